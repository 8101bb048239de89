#define BM 64
#define BN 64
#define BK 8
#define TM 8
#define TN 8
extern "C" __global__ void sgemm(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float sa[BK][BM], sb[BK][BN];
    const int tid = threadIdx.x, tr = tid / (BN / TN), tc = tid % (BN / TN);
    float acc[TM][TN] = {}, ra[TM], rb[TN];
    a += blockIdx.y * BM * k;
    b += blockIdx.x * BN;
    for (int k0 = 0; k0 < k; k0 += BK) {
        for (int i = tid; i < BM * BK; i += 64) sa[i % BK][i / BK] = a[(i / BK) * k + k0 + i % BK];
        for (int i = tid; i < BK * BN; i += 64) sb[i / BN][i % BN] = b[(k0 + i / BN) * n + i % BN];
        __syncthreads();
        for (int l = 0; l < BK; ++l) {
            for (int i = 0; i < TM; ++i) ra[i] = sa[l][tr * TM + i];
            for (int j = 0; j < TN; ++j) rb[j] = sb[l][tc * TN + j];
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) acc[i][j] += ra[i] * rb[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j)
            c[(blockIdx.y * BM + tr * TM + i) * n + blockIdx.x * BN + tc * TN + j] = acc[i][j];
}
