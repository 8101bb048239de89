#include <cstdint>
#define THREADS 256
__device__ float reduce(float v, float *parts, bool is_max) {
    parts[threadIdx.x] = v;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) {
            float o = parts[threadIdx.x + half];
            parts[threadIdx.x] = is_max ? fmaxf(parts[threadIdx.x], o) : parts[threadIdx.x] + o;
        }
        __syncthreads();
    }
    float r = parts[0];
    __syncthreads();
    return r;
}
extern "C" __global__ void softmax(const float *x, float *y, int64_t cols) {
    __shared__ float parts[THREADS];
    const float *in = x + blockIdx.x * cols;
    float *out = y + blockIdx.x * cols;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) top = fmaxf(top, in[j]);
    top = reduce(top, parts, true);
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) sum += expf(in[j] - top);
    sum = reduce(sum, parts, false);
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) out[j] = expf(in[j] - top) / sum;
}
