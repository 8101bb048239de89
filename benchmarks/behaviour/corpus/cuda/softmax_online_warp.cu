#include <cstdint>
extern "C" __global__ void softmax(const float *x, float *y, int64_t rows, int64_t cols) {
    int lane = threadIdx.x & 31;
    int64_t row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    const float *in = x + row * cols;
    float m = -INFINITY, d = 0.0f;
    for (int64_t j = lane; j < cols; j += 32) {
        float v = in[j];
        float n = fmaxf(m, v);
        d = d * __expf(m - n) + __expf(v - n);
        m = n;
    }
    for (int off = 16; off > 0; off >>= 1) {
        float om = __shfl_xor_sync(0xffffffffu, m, off);
        float od = __shfl_xor_sync(0xffffffffu, d, off);
        float n = fmaxf(m, om);
        d = d * __expf(m - n) + od * __expf(om - n);
        m = n;
    }
    for (int64_t j = lane; j < cols; j += 32) y[row * cols + j] = __expf(in[j] - m) / d;
}
