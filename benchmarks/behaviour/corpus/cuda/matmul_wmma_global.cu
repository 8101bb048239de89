#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void hgemm(const half *a, const half *b, float *c, int m, int n, int k) {
    int wm = (blockIdx.y * blockDim.y + threadIdx.y) * 16;
    int wn = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 16;
    if (wm >= m || wn >= n) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int l = 0; l < k; l += 16) {
        wmma::load_matrix_sync(fa, a + wm * k + l, k);
        wmma::load_matrix_sync(fb, b + l * n + wn, n);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + wm * n + wn, fc, n, wmma::mem_row_major);
}
