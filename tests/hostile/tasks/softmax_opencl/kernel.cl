// [EVOLVE_START]
// [LAUNCH] launch solve grid(rows) block(1) args(x, y, cols)
kernel void solve(global const float *x, global float *y, long cols)
{
    global const float *in = x + get_group_id(0) * cols;
    global float *out = y + get_group_id(0) * cols;
    float top = in[0];
    for (long j = 1; j < cols; ++j) top = fmax(top, in[j]);
    float sum = 0.0f;
    for (long j = 0; j < cols; ++j) sum += exp(in[j] - top);
    for (long j = 0; j < cols; ++j) out[j] = exp(in[j] - top) / sum;
}
// [EVOLVE_END]
