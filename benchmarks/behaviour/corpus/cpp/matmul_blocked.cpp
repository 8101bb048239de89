#include <algorithm>
#include <cstdint>
#include <cstring>
constexpr int64_t B = 64;
extern "C" int solve(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
    std::memset(c, 0, sizeof(float) * m * n);
#pragma omp parallel for
    for (int64_t i0 = 0; i0 < m; i0 += B)
        for (int64_t l0 = 0; l0 < k; l0 += B)
            for (int64_t j0 = 0; j0 < n; j0 += B)
                for (int64_t i = i0; i < std::min(i0 + B, m); ++i)
                    for (int64_t l = l0; l < std::min(l0 + B, k); ++l) {
                        const float v = a[i * k + l];
                        for (int64_t j = j0; j < std::min(j0 + B, n); ++j) c[i * n + j] += v * b[l * n + j];
                    }
    return 0;
}
