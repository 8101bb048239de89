// id: A9
// task: softmax_opencl
// expect: incorrect
// why: overflows where rows lie far from zero

// [LAUNCH] launch solve grid(rows) block(1) args(x, y, cols)
kernel void solve(global const float *x, global float *y, long cols)
{
    global const float *in = x + get_group_id(0) * cols;
    global float *out = y + get_group_id(0) * cols;
    float sum = 0.0f;
    for (long j = 0; j < cols; ++j) sum += exp(in[j]);
    for (long j = 0; j < cols; ++j) out[j] = exp(in[j]) / sum;
}
