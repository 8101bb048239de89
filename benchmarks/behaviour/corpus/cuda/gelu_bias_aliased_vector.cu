#include <cuda_runtime.h>
typedef float4 quad;
using Pack = quad;
__device__ __forceinline__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }
__global__ void bias_gelu_residual(const float *x, const float *bias, const float *res, float *y, int n4, int cols4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    Pack v = reinterpret_cast<const Pack *>(x)[i];
    Pack b = reinterpret_cast<const Pack *>(bias)[i % cols4];
    Pack r = reinterpret_cast<const Pack *>(res)[i];
    v.x = gelu(v.x + b.x) + r.x;
    v.y = gelu(v.y + b.y) + r.y;
    v.z = gelu(v.z + b.z) + r.z;
    v.w = gelu(v.w + b.w) + r.w;
    reinterpret_cast<Pack *>(y)[i] = v;
}
