#define TILE 16
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float as[TILE][TILE];
    __shared__ float bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float acc = 0.0f;
    for (int t = 0; t < (k + TILE - 1) / TILE; ++t) {
        int ak = t * TILE + tx, bk = t * TILE + ty;
        as[ty][tx] = row < m && ak < k ? a[row * k + ak] : 0.0f;
        bs[ty][tx] = bk < k && col < n ? b[bk * n + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int l = 0; l < TILE; ++l) acc += as[ty][l] * bs[l][tx];
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = acc;
}
