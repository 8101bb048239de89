#include <algorithm>
#include <cmath>
#include <cstdint>
extern "C" int solve(const float *q, const float *k, const float *v, float *o, int64_t n) {
    constexpr int D = 64;
    constexpr int64_t KEYS = 128;
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) {
        float acc[D] = {0}, m = -INFINITY, l = 0.0f;
        for (int64_t j0 = 0; j0 < n; j0 += KEYS) {
            float s[KEYS];
            const int64_t count = std::min(KEYS, n - j0);
            float top = m;
            for (int64_t j = 0; j < count; ++j) {
                float dot = 0.0f;
                for (int d = 0; d < D; ++d) dot += q[i * D + d] * k[(j0 + j) * D + d];
                s[j] = dot * 0.125f;
                top = std::max(top, s[j]);
            }
            const float fix = std::exp(m - top);
            l *= fix;
            for (int d = 0; d < D; ++d) acc[d] *= fix;
            for (int64_t j = 0; j < count; ++j) {
                const float p = std::exp(s[j] - top);
                l += p;
                for (int d = 0; d < D; ++d) acc[d] += p * v[(j0 + j) * D + d];
            }
            m = top;
        }
        for (int d = 0; d < D; ++d) o[i * D + d] = acc[d] / l;
    }
    return 0;
}
