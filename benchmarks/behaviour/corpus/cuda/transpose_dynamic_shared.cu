extern __shared__ float tile[];
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols) {
    int j = blockIdx.x * 32 + threadIdx.x, i0 = blockIdx.y * 32;
    for (int r = threadIdx.y; r < 32; r += blockDim.y)
        if (i0 + r < rows && j < cols) tile[r * 33 + threadIdx.x] = x[(i0 + r) * cols + j];
    __syncthreads();
    int i = i0 + threadIdx.x, jo = blockIdx.x * 32;
    for (int r = threadIdx.y; r < 32; r += blockDim.y)
        if (i < rows && jo + r < cols) y[(jo + r) * rows + i] = tile[threadIdx.x * 33 + r];
}
