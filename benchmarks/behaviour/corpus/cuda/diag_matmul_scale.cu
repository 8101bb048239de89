extern "C" __global__ void diag_times(const float *diag, const float *b, float *c, int n, int m) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y;
    if (col < m) c[row * m + col] = diag[row] * b[row * m + col];
}
