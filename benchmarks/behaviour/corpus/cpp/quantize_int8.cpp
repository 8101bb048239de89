#include <immintrin.h>
extern "C" __attribute__((target("avx2"))) void quantize(const float *x, signed char *q, float *scale, int n) {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    __m256 top = _mm256_setzero_ps();
    for (int i = 0; i < n; i += 8) top = _mm256_max_ps(top, _mm256_and_ps(mask, _mm256_loadu_ps(x + i)));
    top = _mm256_max_ps(top, _mm256_permute2f128_ps(top, top, 1));
    top = _mm256_max_ps(top, _mm256_permute_ps(top, 0x4e));
    top = _mm256_max_ps(top, _mm256_permute_ps(top, 0xb1));
    const float s = _mm256_cvtss_f32(top) / 127.0f;
    *scale = s;
    for (int i = 0; i < n; ++i) q[i] = static_cast<signed char>(x[i] / s);
}
