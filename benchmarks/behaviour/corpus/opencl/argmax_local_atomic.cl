kernel void row_any(global const float *x, global int *out, int cols)
{
    local int best;
    if (get_local_id(0) == 0) best = cols;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = get_local_id(0); j < cols; j += get_local_size(0))
        if (x[get_group_id(0) * cols + j] > 0.0f) atomic_min(&best, j);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) out[get_group_id(0)] = best;
}
