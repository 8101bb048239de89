kernel void softmax(global const float *restrict x, global float *restrict y, int cols)
{
    const size_t base = get_group_id(0) * (size_t)cols;
    float top = -MAXFLOAT;
    for (int j = get_local_id(0); j < cols; j += get_local_size(0)) top = fmax(top, x[base + j]);
    top = work_group_reduce_max(top);
    float sum = 0;
    for (int j = get_local_id(0); j < cols; j += get_local_size(0)) sum += exp(x[base + j] - top);
    sum = work_group_reduce_add(sum);
    for (int j = get_local_id(0); j < cols; j += get_local_size(0)) y[base + j] = exp(x[base + j] - top) / sum;
}
