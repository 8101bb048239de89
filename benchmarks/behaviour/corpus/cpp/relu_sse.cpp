#include <xmmintrin.h>
extern "C" int relu(const float *x, float *y, long n) {
    const __m128 zero = _mm_setzero_ps();
    long i = 0;
    for (; i + 4 <= n; i += 4) _mm_storeu_ps(y + i, _mm_max_ps(_mm_loadu_ps(x + i), zero));
    for (; i < n; ++i) y[i] = x[i] > 0.f ? x[i] : 0.f;
    return 0;
}
