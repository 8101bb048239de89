#define R 4
extern "C" __global__ void stencil(const float *__restrict__ x, const float *__restrict__ w, float *y, int n) {
    __shared__ float s[256 + 2 * R];
    int g = blockIdx.x * 256 + threadIdx.x, l = threadIdx.x + R;
    s[l] = g < n ? x[g] : 0.f;
    if (threadIdx.x < R) {
        s[l - R] = g >= R ? x[g - R] : 0.f;
        s[l + 256] = g + 256 < n ? x[g + 256] : 0.f;
    }
    __syncthreads();
    float acc = 0.f;
#pragma unroll
    for (int o = -R; o <= R; ++o) acc += w[o + R] * s[l + o];
    if (g < n) y[g] = acc;
}
