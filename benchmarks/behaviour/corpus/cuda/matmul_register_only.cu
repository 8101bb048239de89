extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    int row = (blockIdx.y * blockDim.y + threadIdx.y) * 4;
    int col = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (row + 3 >= m || col + 3 >= n) return;
    float acc[4][4] = {{0.f}};
    for (int l = 0; l < k; ++l) {
        float u[4], v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            u[i] = a[(row + i) * k + l];
            v[i] = b[l * n + col + i];
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(u[i], v[j], acc[i][j]);
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) c[(row + i) * n + col + j] = acc[i][j];
}
