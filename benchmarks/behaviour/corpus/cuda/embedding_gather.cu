extern "C" __global__ void gather(const int *ids, const float *table, float *out, int dim) {
    int j = blockIdx.y * blockDim.x + threadIdx.x;
    if (j < dim) out[blockIdx.x * dim + j] = table[ids[blockIdx.x] * dim + j];
}
