// id: C2
// task: twice
// expect: ok
// why: non-temporal stores, fenced before it returns

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
ENTRY {
    int64_t i = 0;
#if defined(__SSE2__)
    for (; i < n && (uintptr_t)(y + i) % 16; ++i) y[i] = 2.0f * x[i];
    for (; i + 4 <= n; i += 4) {
        __m128 v = _mm_loadu_ps(x + i);
        _mm_stream_ps(y + i, _mm_add_ps(v, v));
    }
    _mm_sfence();
#endif
    for (; i < n; ++i) y[i] = 2.0f * x[i];
    return 0;
}
