extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < rows && j < cols) y[j * rows + i] = x[i * cols + j];
}
