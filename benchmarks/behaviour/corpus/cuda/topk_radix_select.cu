extern "C" __global__ void kth(const unsigned *x, unsigned *out, int n, int k) {
    __shared__ int counts[256];
    __shared__ unsigned prefix;
    __shared__ int left;
    if (threadIdx.x == 0) prefix = 0, left = k;
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int b = threadIdx.x; b < 256; b += blockDim.x) counts[b] = 0;
        __syncthreads();
        unsigned mask = shift == 24 ? 0u : ~0u << (shift + 8);
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            if ((x[i] & mask) == prefix) atomicAdd(&counts[(x[i] >> shift) & 255], 1);
        __syncthreads();
        if (threadIdx.x == 0) {
            int b = 255;
            while (b > 0 && counts[b] < left) left -= counts[b--];
            prefix |= (unsigned)b << shift;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = prefix;
}
