#include <cstdint>
extern "C" __global__ void softmax(const float *x, float *y, int64_t rows, int64_t cols) {
    int64_t row = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float *in = x + row * cols;
    float top = in[0];
    for (int64_t j = 1; j < cols; ++j) top = fmaxf(top, in[j]);
    float sum = 0.0f;
    for (int64_t j = 0; j < cols; ++j) sum += expf(in[j] - top);
    for (int64_t j = 0; j < cols; ++j) y[row * cols + j] = expf(in[j] - top) / sum;
}
