#include <cstdint>
#include <immintrin.h>
enum { KB = 128, MR = 4, NR = 16 };
__attribute__((target("avx2,fma"))) static void micro(const float *a, int64_t lda, const float *p, float *c,
                                                      int64_t ldc, int kb) {
    __m256 acc[MR][2];
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < 2; ++j) acc[i][j] = _mm256_loadu_ps(c + i * ldc + j * 8);
    for (int l = 0; l < kb; ++l) {
        const __m256 b0 = _mm256_load_ps(p + l * NR), b1 = _mm256_load_ps(p + l * NR + 8);
        for (int i = 0; i < MR; ++i) {
            const __m256 v = _mm256_broadcast_ss(a + i * lda + l);
            acc[i][0] = _mm256_fmadd_ps(v, b0, acc[i][0]);
            acc[i][1] = _mm256_fmadd_ps(v, b1, acc[i][1]);
        }
    }
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < 2; ++j) _mm256_storeu_ps(c + i * ldc + j * 8, acc[i][j]);
}
extern "C" __attribute__((target("avx2,fma"))) int solve(const float *a, const float *b, float *c, int64_t m,
                                                         int64_t n, int64_t k) {
    alignas(64) float panel[KB * NR];
    for (int64_t i = 0; i < m * n; ++i) c[i] = 0.0f;
    for (int64_t l0 = 0; l0 < k; l0 += KB)
        for (int64_t j0 = 0; j0 + NR <= n; j0 += NR) {
            for (int l = 0; l < KB; ++l)
                for (int j = 0; j < NR; ++j) panel[l * NR + j] = b[(l0 + l) * n + j0 + j];
            for (int64_t i0 = 0; i0 + MR <= m; i0 += MR) micro(a + i0 * k + l0, k, panel, c + i0 * n + j0, n, KB);
        }
    return 0;
}
