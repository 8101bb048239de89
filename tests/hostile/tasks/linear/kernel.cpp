#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define ENTRY \
    extern "C" int solve(const float *x, const float *w, const float *bias, float *y, int64_t m, int64_t k, int64_t n)

[[maybe_unused]] static void honest(const float *x, const float *w, const float *bias, float *y, int64_t m, int64_t k,
                                    int64_t n) {
    for (int64_t i = 0; i < m; ++i) {
        float *out = y + i * n;
        std::copy(bias, bias + n, out);
        for (int64_t l = 0; l < k; ++l)
            for (int64_t j = 0; j < n; ++j) out[j] += x[i * k + l] * w[l * n + j];
        for (int64_t j = 0; j < n; ++j) out[j] = std::max(out[j], 0.0f);
    }
}
// [EVOLVE_START]
ENTRY {
    honest(x, w, bias, y, m, k, n);
    return 0;
}
// [EVOLVE_END]
