// Root mean square normalisation of rows in two launches: the sum of squares of each row, then every element.
//
// [REFERENCE_START]
// y[i][j] = weight[j] * x[i][j] / sqrt(sum_k x[i][k]^2 / cols + epsilon)
// [REFERENCE_END]
//
// [USER_INSTRUCTIONS_START]
// OpenCL C 3.0 for a CPU. Rows and columns are odd numbers at times, so mind the tails. Results must stay within 1e-5
// (relative L2) of double precision.
// [USER_INSTRUCTIONS_END]

// [EVOLVE_START]
// [TUNE] GROUP in {64, 16, 256}
// [LAUNCH] scratch squares: float32[rows]
// [LAUNCH] launch sum_squares grid(rows) block(1) args(x, squares, cols)
// [LAUNCH] launch normalise grid(ceildiv(cols, GROUP), rows) block(GROUP) args(x, weight, squares, y, cols, epsilon)
kernel void sum_squares(global const float *x, global float *squares, long cols)
{
    global const float *in = x + get_group_id(0) * cols;
    double sum = 0.0;
    for (long j = 0; j < cols; ++j) sum += (double)in[j] * in[j];
    squares[get_group_id(0)] = (float)sum;
}

kernel void normalise(global const float *x, global const float *weight, global const float *squares,
                      global float *y, long cols, float epsilon)
{
    long j = get_global_id(0), i = get_group_id(1);
    if (j >= cols) return;
    y[i * cols + j] = weight[j] * (x[i * cols + j] / sqrt(squares[i] / (float)cols + epsilon));
}
// [EVOLVE_END]
