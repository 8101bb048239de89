kernel void blur(global const float *x, global float *y, int n)
{
    const int i = get_global_id(0);
#if 0
    local float cache[258];
    cache[get_local_id(0) + 1] = x[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[i] = sub_group_reduce_add(cache[get_local_id(0)]);
#endif
    if (i > 0 && i < n - 1) y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}
