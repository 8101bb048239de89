#pragma OPENCL EXTENSION cl_khr_subgroups : enable
kernel void softmax(global const float *x, global float *y, int rows, int cols)
{
    const int row = get_group_id(0) * get_num_sub_groups() + get_sub_group_id();
    if (row >= rows) return;
    global const float *in = x + row * cols;
    const int lane = get_sub_group_local_id(), width = get_sub_group_size();
    float m = -INFINITY, d = 0.0f;
    for (int j = lane; j < cols; j += width) {
        const float n = fmax(m, in[j]);
        d = d * native_exp(m - n) + native_exp(in[j] - n);
        m = n;
    }
    const float top = sub_group_reduce_max(m);
    const float sum = sub_group_reduce_add(d * native_exp(m - top));
    for (int j = lane; j < cols; j += width) y[row * cols + j] = native_exp(in[j] - top) / sum;
}
