// Softmax over the rows of a matrix, one work-item for each row.
//
// [REFERENCE_START]
// y[i][j] = exp(x[i][j] - max_k x[i][k]) / sum_k exp(x[i][k] - max_k x[i][k])
// [REFERENCE_END]
//
// [USER_INSTRUCTIONS_START]
// OpenCL C 3.0 for a CPU. Rows and columns are odd numbers at times, so mind the tails. Results must stay within 1e-5
// (relative L2) of double precision.
// [USER_INSTRUCTIONS_END]

// [EVOLVE_START]
// [LAUNCH] launch solve grid(rows) block(1) args(x, y, cols)
kernel void solve(global const float *x, global float *y, long cols)
{
    global const float *in = x + get_group_id(0) * cols;
    global float *out = y + get_group_id(0) * cols;
    float largest = in[0];
    for (long j = 1; j < cols; ++j) {
        if (in[j] > largest) largest = in[j];
    }
    double sum = 0.0;
    for (long j = 0; j < cols; ++j) {
        sum += exp(in[j] - largest);
    }
    for (long j = 0; j < cols; ++j) {
        out[j] = exp(in[j] - largest) / (float)sum;
    }
}
// [EVOLVE_END]
