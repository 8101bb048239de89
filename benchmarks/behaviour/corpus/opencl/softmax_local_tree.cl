#define SIZE 128
float group_reduce(float v, local float *parts, int want_max)
{
    const int l = get_local_id(0);
    parts[l] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_ = SIZE / 2; half_ > 0; half_ /= 2) {
        if (l < half_) parts[l] = want_max ? fmax(parts[l], parts[l + half_]) : parts[l] + parts[l + half_];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    v = parts[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return v;
}
__attribute__((reqd_work_group_size(SIZE, 1, 1)))
kernel void softmax(global const float *x, global float *y, int cols)
{
    local float parts[SIZE];
    const int base = get_group_id(0) * cols, l = get_local_id(0);
    float top = -INFINITY, sum = 0.0f;
    for (int j = l; j < cols; j += SIZE) top = fmax(top, x[base + j]);
    top = group_reduce(top, parts, 1);
    for (int j = l; j < cols; j += SIZE) sum += exp(x[base + j] - top);
    sum = group_reduce(sum, parts, 0);
    for (int j = l; j < cols; j += SIZE) y[base + j] = exp(x[base + j] - top) / sum;
}
