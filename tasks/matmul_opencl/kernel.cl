// Product of two matrices, one work-item for each row.
//
// [REFERENCE_START]
// c[i][j] = sum_l a[i][l] * b[l][j]; a is m x k, b is k x n, c is m x n, all row-major
// [REFERENCE_END]
//
// [USER_INSTRUCTIONS_START]
// OpenCL C 3.0 for a CPU. Sizes are odd numbers at times, so mind the edges of tiles.
// [USER_INSTRUCTIONS_END]

// [EVOLVE_START]
// [LAUNCH] launch solve grid(m) block(1) args(a, b, c, n, k)
kernel void solve(global const float *a, global const float *b, global float *c, long n, long k)
{
    const long i = get_group_id(0);
    for (long j = 0; j < n; ++j) {
        float sum = 0.0f;
        for (long l = 0; l < k; ++l) {
            sum += a[i * k + l] * b[l * n + j];
        }
        c[i * n + j] = sum;
    }
}
// [EVOLVE_END]
