// id: A2
// task: softmax_opencl
// expect: incorrect
// why: the mean of every row in every element

// [LAUNCH] launch solve grid(rows) block(1) args(x, y, cols)
kernel void solve(global const float *x, global float *y, long cols)
{
    global const float *in = x + get_group_id(0) * cols;
    global float *out = y + get_group_id(0) * cols;
    for (long j = 0; j < cols; ++j) out[j] = 1.0f / cols;
}
