#include <cstring>
using lanes = float __attribute__((vector_size(32)));
typedef lanes block_t;
template <class V>
static inline V get(const float *p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
extern "C" int scale(const float *x, float *y, int n, float f) {
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        block_t v = get<block_t>(x + i) * f;
        std::memcpy(y + i, &v, sizeof v);
    }
    for (; i < n; ++i) y[i] = x[i] * f;
    return 0;
}
