#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda::wmma;
constexpr int T = 64, KT = 32;
__device__ void stage(half *sa, half *sb, const half *a, const half *b, int n, int k, int k0) {
    for (int i = threadIdx.x; i < T * KT / 8; i += blockDim.x) {
        __pipeline_memcpy_async(sa + i * 8, a + (i / (KT / 8)) * k + k0 + i % (KT / 8) * 8, 16);
        __pipeline_memcpy_async(sb + i * 8, b + (k0 + i / (T / 8)) * n + i % (T / 8) * 8, 16);
    }
    __pipeline_commit();
}
extern "C" __global__ void hgemm(const half *a, const half *b, float *c, int n, int k) {
    __shared__ __align__(32) half sa[2][T * KT], sb[2][KT * T];
    a += blockIdx.y * T * k;
    b += blockIdx.x * T;
    int warp = threadIdx.x / 32;
    fragment<accumulator, 16, 16, 16, float> acc[4];
    for (auto &f : acc) fill_fragment(f, 0.f);
    stage(sa[0], sb[0], a, b, n, k, 0);
    for (int k0 = 0, s = 0; k0 < k; k0 += KT, s ^= 1) {
        if (k0 + KT < k) stage(sa[s ^ 1], sb[s ^ 1], a, b, n, k, k0 + KT);
        __pipeline_wait_prior(k0 + KT < k ? 1 : 0);
        __syncthreads();
        for (int l = 0; l < KT; l += 16) {
            fragment<matrix_a, 16, 16, 16, half, row_major> fa;
            load_matrix_sync(fa, sa[s] + warp * 16 * KT + l, KT);
            for (int j = 0; j < 4; ++j) {
                fragment<matrix_b, 16, 16, 16, half, row_major> fb;
                load_matrix_sync(fb, sb[s] + l * T + j * 16, T);
                mma_sync(acc[j], fa, fb, acc[j]);
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; ++j)
        store_matrix_sync(c + (blockIdx.y * T + warp * 16) * n + blockIdx.x * T + j * 16, acc[j], n, mem_row_major);
}
