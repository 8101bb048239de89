#include <math_constants.h>
#define D 64
#define BC 32
extern "C" __global__ void flash(const float *q, const float *k, const float *v, float *o, int n, float scale) {
    __shared__ float ks[BC][D], vs[BC][D];
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float qr[D], acc[D], m = -CUDART_INF_F, l = 0.f;
    for (int d = 0; d < D; ++d) {
        qr[d] = q[row * D + d] * scale;
        acc[d] = 0.f;
    }
    for (int j0 = 0; j0 < n; j0 += BC) {
        for (int i = threadIdx.x; i < BC * D; i += blockDim.x) {
            ks[i / D][i % D] = k[j0 * D + i];
            vs[i / D][i % D] = v[j0 * D + i];
        }
        __syncthreads();
        for (int j = 0; j < BC; ++j) {
            float s = 0.f;
            for (int d = 0; d < D; ++d) s += qr[d] * ks[j][d];
            float mn = fmaxf(m, s), c = __expf(m - mn), p = __expf(s - mn);
            l = l * c + p;
            for (int d = 0; d < D; ++d) acc[d] = acc[d] * c + p * vs[j][d];
            m = mn;
        }
        __syncthreads();
    }
    for (int d = 0; d < D; ++d) o[row * D + d] = acc[d] / l;
}
