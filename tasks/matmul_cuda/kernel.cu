// Product of two matrices, a square tile of the result for each block.
//
// [REFERENCE_START]
// c[i][j] = sum_l a[i][l] * b[l][j]
// [REFERENCE_END]
//
// [USER_INSTRUCTIONS_START]
// CUDA device code and a launch plan in comments; there is no host code. Kernels are `extern "C" __global__`, sizes
// arrive as int64_t. No size need be a multiple of a tile. Results must stay within 1e-5 (relative L2) of double
// precision: TF32 and half precision are too coarse.
// [USER_INSTRUCTIONS_END]
#include <cstdint>

// [EVOLVE_START]
// [TUNE] TILE in {16, 8, 32}
// [LAUNCH] launch matmul grid(ceildiv(n, TILE), ceildiv(m, TILE)) block(TILE, TILE) args(a, b, c, m, n, k)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int64_t row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int64_t at = 0; at < k; at += TILE) {
        const int64_t l = at + threadIdx.x, r = at + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < m && l < k ? a[row * k + l] : 0.0f;
        right[threadIdx.y][threadIdx.x] = r < k && column < n ? b[r * n + column] : 0.0f;
        __syncthreads();
        for (int step = 0; step < TILE; ++step) sum += left[threadIdx.y][step] * right[step][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
// [EVOLVE_END]
