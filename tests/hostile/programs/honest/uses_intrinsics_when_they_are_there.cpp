// id: A18
// task: twice
// expect: ok
// why: AVX2 behind its macro, a scalar tail

#if defined(__AVX2__)
#include <immintrin.h>
#endif
ENTRY {
    int64_t i = 0;
#if defined(__AVX2__)
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);
        _mm256_storeu_ps(y + i, _mm256_add_ps(v, v));
    }
#endif
    for (; i < n; ++i) y[i] = x[i] + x[i];
    return 0;
}
