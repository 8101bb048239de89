#include <cuda_runtime.h>
template <bool REDUCE>
__device__ void body(const float *x, float *y, int i) {
    float v = x[i] * 2.0f;
    if constexpr (REDUCE) {
        for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
        if ((threadIdx.x & 31) == 0) atomicAdd(y, v);
    } else {
        y[i] = v;
    }
}
extern "C" __global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) body<false>(x, y, i);
}
