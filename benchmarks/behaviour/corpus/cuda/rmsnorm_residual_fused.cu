extern "C" __global__ void add_rmsnorm(const float *x, const float *res, const float *w, float *y) {
    const int base = blockIdx.x * 1024;
    float v[32], ss = 0.f;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        int j = threadIdx.x + i * 32;
        v[i] = x[base + j] + res[base + j];
        ss += v[i] * v[i];
    }
    for (int o = 16; o > 0; o >>= 1) ss += __shfl_xor_sync(0xffffffff, ss, o);
    float scale = rsqrtf(ss / 1024.f + 1e-6f);
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        int j = threadIdx.x + i * 32;
        y[base + j] = v[i] * scale * w[j];
    }
}
