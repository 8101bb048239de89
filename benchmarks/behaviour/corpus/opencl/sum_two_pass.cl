kernel void partial(global const float *x, global float *parts, int n, local float *scratch)
{
    const int l = get_local_id(0);
    float v = 0.0f;
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) v += x[i];
    scratch[l] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int h = get_local_size(0) / 2; h > 0; h >>= 1) {
        if (l < h) scratch[l] += scratch[l + h];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) parts[get_group_id(0)] = scratch[0];
}
kernel void finish(global const float *parts, global float *out, int groups)
{
    float v = 0.0f;
    for (int g = 0; g < groups; ++g) v += parts[g];
    *out = v;
}
