kernel void histogram(global const uchar *x, volatile global uint *bins, int n)
{
    local uint mine[256];
    for (int b = get_local_id(0); b < 256; b += get_local_size(0)) mine[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(mine + x[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = get_local_id(0); b < 256; b += get_local_size(0)) atomic_add(bins + b, mine[b]);
}
