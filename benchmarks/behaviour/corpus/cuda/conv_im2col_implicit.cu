#define TS 16
extern "C" __global__ void conv(const float *x, const float *w, float *y, int c, int h, int wd, int kc) {
    __shared__ float wt[TS][TS], xt[TS][TS];
    int oh = h - 2, ow = wd - 2, kk = c * 9;
    int co = blockIdx.y * TS + threadIdx.y, p = blockIdx.x * TS + threadIdx.x;
    float acc = 0.f;
    for (int k0 = 0; k0 < kk; k0 += TS) {
        int kw = k0 + threadIdx.x, kx = k0 + threadIdx.y;
        wt[threadIdx.y][threadIdx.x] = co < kc && kw < kk ? w[co * kk + kw] : 0.f;
        int ci = kx / 9, r = kx % 9 / 3, s = kx % 3;
        xt[threadIdx.y][threadIdx.x] =
            kx < kk && p < oh * ow ? x[(ci * h + p / ow + r) * wd + p % ow + s] : 0.f;
        __syncthreads();
        for (int l = 0; l < TS; ++l) acc += wt[threadIdx.y][l] * xt[l][threadIdx.x];
        __syncthreads();
    }
    if (co < kc && p < oh * ow) y[co * oh * ow + p] = acc;
}
