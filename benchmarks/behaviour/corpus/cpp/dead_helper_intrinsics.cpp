#include <immintrin.h>
#define PREFETCH_NEXT(p) __builtin_prefetch((p) + 64)
__attribute__((target("avx2"), unused)) static float hsum(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_hadd_ps(s, s);
    return _mm_cvtss_f32(_mm_hadd_ps(s, s));
}
extern "C" void square(const float *x, float *y, int n) {
    for (int i = 0; i < n; ++i) y[i] = x[i] * x[i];
}
