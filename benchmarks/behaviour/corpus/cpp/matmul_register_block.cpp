#include <cstdint>
extern "C" int solve(const float *__restrict a, const float *__restrict b, float *__restrict c, int64_t m, int64_t n,
                     int64_t k) {
    for (int64_t i = 0; i + 4 <= m; i += 4)
        for (int64_t j = 0; j + 4 <= n; j += 4) {
            float acc[4][4] = {};
            for (int64_t l = 0; l < k; ++l)
                for (int u = 0; u < 4; ++u)
                    for (int v = 0; v < 4; ++v) acc[u][v] += a[(i + u) * k + l] * b[l * n + j + v];
            for (int u = 0; u < 4; ++u)
                for (int v = 0; v < 4; ++v) c[(i + u) * n + j + v] = acc[u][v];
        }
    return 0;
}
