// id: A7
// task: softmax_opencl
// expect: incorrect
// why: keeps differences in half precision

// [LAUNCH] launch solve grid(rows) block(1) args(x, y, cols)
kernel void solve(global const float *x, global float *y, long cols)
{
    global const float *in = x + get_group_id(0) * cols;
    global float *out = y + get_group_id(0) * cols;
    ushort place[1];
    half *kept = (half *)place;
    float top = in[0];
    for (long j = 1; j < cols; ++j) top = fmax(top, in[j]);
    float sum = 0.0f;
    for (long j = 0; j < cols; ++j) {
        vstore_half(exp(in[j] - top), 0, kept);
        sum += vload_half(0, kept);
    }
    for (long j = 0; j < cols; ++j) {
        vstore_half(exp(in[j] - top), 0, kept);
        out[j] = vload_half(0, kept) / sum;
    }
}
