#include <cstdint>
extern "C" int solve(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float acc = 0.0f;
            for (int64_t l = 0; l < k; ++l) acc += a[i * k + l] * b[l * n + j];
            c[i * n + j] = acc;
        }
    return 0;
}
