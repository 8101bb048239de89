// Softmax over the rows of a matrix, one block a row.
//
// [REFERENCE_START]
// y[i][j] = exp(x[i][j] - max_k x[i][k]) / sum_k exp(x[i][k] - max_k x[i][k])
// [REFERENCE_END]
//
// [USER_INSTRUCTIONS_START]
// CUDA device code and a launch plan in comments; there is no host code. Kernels are `extern "C" __global__`, sizes
// arrive as int64_t. Rows and columns are odd numbers at times, so mind tails and alignment: a row begins at any
// multiple of 4 bytes. Results must stay within 1e-5 (relative L2) of double precision.
// [USER_INSTRUCTIONS_END]
#include <cstdint>

// [EVOLVE_START]
// [TUNE] THREADS in {256, 128, 512, 1024}
// [LAUNCH] launch softmax grid(rows) block(THREADS) args(x, y, cols)
__device__ float block_reduce(float value, bool largest) {
    __shared__ float parts[THREADS];
    parts[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const float other = parts[threadIdx.x + half];
            parts[threadIdx.x] = largest ? fmaxf(parts[threadIdx.x], other) : parts[threadIdx.x] + other;
        }
        __syncthreads();
    }
    const float result = parts[0];
    __syncthreads();
    return result;
}

extern "C" __global__ void softmax(const float *x, float *y, int64_t cols) {
    const float *in = x + blockIdx.x * cols;
    float *out = y + blockIdx.x * cols;
    float top = -INFINITY;
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) top = fmaxf(top, in[j]);
    top = block_reduce(top, true);
    float sum = 0.0f;
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) sum += expf(in[j] - top);
    sum = block_reduce(sum, false);
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) out[j] = expf(in[j] - top) / sum;
}
// [EVOLVE_END]
