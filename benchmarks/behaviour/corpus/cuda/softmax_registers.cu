#include <cuda_runtime.h>
template <int PER_LANE>
__device__ void row_softmax(const float *in, float *out, int lane) {
    float v[PER_LANE];
    float top = -INFINITY;
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) {
        v[i] = in[lane + 32 * i];
        top = fmaxf(top, v[i]);
    }
    for (int o = 16; o; o /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
    float sum = 0.f;
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) {
        v[i] = __expf(v[i] - top);
        sum += v[i];
    }
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) out[lane + 32 * i] = v[i] / sum;
}
__global__ void softmax_1024(const float *__restrict__ x, float *__restrict__ y, int rows) {
    int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row < rows) row_softmax<32>(x + row * 1024, y + row * 1024, threadIdx.x & 31);
}
