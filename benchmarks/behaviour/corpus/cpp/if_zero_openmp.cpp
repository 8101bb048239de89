#include <cstdint>
#if 0
#include <immintrin.h>
extern "C" int add(const float *a, const float *b, float *c, int64_t n) {
#pragma omp parallel for reduction(+ : n)
    for (int64_t i = 0; i < n; i += 8) _mm256_storeu_ps(c + i, _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
#pragma omp atomic
    c[0] += 1;
    return 0;
}
#endif
extern "C" int add(const float *a, const float *b, float *c, int64_t n) {
#ifdef KFD_NEVER_DEFINED
#pragma omp simd
#endif
    for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
    return 0;
}
