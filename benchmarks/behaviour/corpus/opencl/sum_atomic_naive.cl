kernel void count_nonzero(global const int *x, volatile global int *out, int n)
{
    const int i = get_global_id(0);
    if (i < n && x[i] != 0) atomic_inc(out);
}
