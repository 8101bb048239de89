#pragma OPENCL EXTENSION cl_intel_subgroups : enable
__attribute__((intel_reqd_sub_group_size(16)))
kernel void row_sum(global const float *x, global float *y, int cols)
{
    const int row = get_group_id(0), lane = get_sub_group_local_id();
    float v = 0.0f;
    for (int j = lane; j < cols; j += 16) v += x[row * cols + j];
    for (uint d = 8; d > 0; d /= 2) v += intel_sub_group_shuffle_xor(v, d);
    if (lane == 0) y[row] = v;
}
