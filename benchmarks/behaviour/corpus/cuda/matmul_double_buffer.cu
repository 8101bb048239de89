template <int B>
__device__ void gemm(const float *a, const float *b, float *c, int n) {
    __shared__ float sa[2][B][B], sb[2][B][B];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * B + y, col = blockIdx.x * B + x;
    float acc = 0.f;
    int buf = 0;
    sa[0][y][x] = a[row * n + x];
    sb[0][y][x] = b[y * n + col];
    __syncthreads();
    for (int t = B; t <= n; t += B) {
        if (t < n) {
            sa[buf ^ 1][y][x] = a[row * n + t + x];
            sb[buf ^ 1][y][x] = b[(t + y) * n + col];
        }
#pragma unroll
        for (int l = 0; l < B; ++l) acc += sa[buf][y][l] * sb[buf][l][x];
        buf ^= 1;
        __syncthreads();
    }
    c[row * n + col] = acc;
}
extern "C" __global__ void matmul16(const float *a, const float *b, float *c, int n) { gemm<16>(a, b, c, n); }
