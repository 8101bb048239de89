extern "C" __global__ void count_positive(const float *x, int *out, int cols) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    int mine = 0;
    for (int j = threadIdx.x; j < cols; j += blockDim.x) mine += x[blockIdx.x * cols + j] > 0.f;
    atomicAdd(&count, mine);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = count;
}
