kernel void add_rmsnorm(global const float *x, global float *res, global const float *w, global float *y, int cols)
{
    const int base = get_group_id(0) * cols;
    float ss = 0.0f;
    for (int j = get_local_id(0); j < cols; j += get_local_size(0)) {
        const float v = x[base + j] + res[base + j];
        res[base + j] = v;
        ss += v * v;
    }
    const float scale = rsqrt(work_group_reduce_add(ss) / cols + 1e-6f);
    for (int j = get_local_id(0); j < cols; j += get_local_size(0)) y[base + j] = res[base + j] * scale * w[j];
}
