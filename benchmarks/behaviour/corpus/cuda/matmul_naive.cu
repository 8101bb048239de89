extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float acc = 0.0f;
    for (int l = 0; l < k; ++l) acc += a[row * k + l] * b[l * n + col];
    c[row * n + col] = acc;
}
