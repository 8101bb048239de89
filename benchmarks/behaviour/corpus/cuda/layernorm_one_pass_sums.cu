#include <cuda_fp16.h>
extern "C" __global__ void layernorm(const __half2 *x, __half2 *y, int cols2) {
    x += blockIdx.x * cols2;
    y += blockIdx.x * cols2;
    float s = 0.f, q = 0.f;
    for (int j = threadIdx.x; j < cols2; j += 32) {
        float2 v = __half22float2(x[j]);
        s += v.x + v.y;
        q += v.x * v.x + v.y * v.y;
    }
    for (int o = 16; o > 0; o >>= 1) {
        s += __shfl_xor_sync(0xffffffffu, s, o);
        q += __shfl_xor_sync(0xffffffffu, q, o);
    }
    float mean = s / (2 * cols2), rstd = rsqrtf(q / (2 * cols2) - mean * mean + 1e-5f);
    for (int j = threadIdx.x; j < cols2; j += 32) {
        float2 v = __half22float2(x[j]);
        y[j] = __floats2half2_rn((v.x - mean) * rstd, (v.y - mean) * rstd);
    }
}
