#include <cuda_runtime.h>
template <int TS>
__device__ float tile_product(const float *a, const float *b, int n, int k, int row, int col, int from, int to) {
    __shared__ float ta[TS][TS + 1];
    __shared__ float tb[TS][TS + 1];
    float acc = 0.f;
    for (int k0 = from; k0 < to; k0 += TS) {
        ta[threadIdx.y][threadIdx.x] = a[row * k + k0 + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(k0 + threadIdx.y) * n + col];
        __syncthreads();
        for (int l = 0; l < TS; ++l) acc += ta[threadIdx.y][l] * tb[l][threadIdx.x];
        __syncthreads();
    }
    return acc;
}
extern "C" __global__ void split_k(const float *a, const float *b, float *c, int n, int k, int slice) {
    int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    float part = tile_product<32>(a, b, n, k, row, col, blockIdx.z * slice, blockIdx.z * slice + slice);
    atomicAdd(c + row * n + col, part);
}
