#include <algorithm>
#include <cstdint>
extern "C" int solve(const double *a, const double *b, double *c, int n) {
    const int T = 48;
    for (int i = 0; i < n * n; ++i) c[i] = 0.0;
    for (int ii = 0; ii < n; ii += T)
        for (int kk = 0; kk < n; kk += T)
            for (int jj = 0; jj < n; jj += T) {
                const int ie = std::min(n, ii + T), ke = std::min(n, kk + T), je = std::min(n, jj + T);
                for (int i = ii; i < ie; ++i)
                    for (int l = kk; l < ke; ++l) {
                        if (l + 1 < n) __builtin_prefetch(b + (l + 1) * n + jj, 0, 3);
                        const double v = a[i * n + l];
                        for (int j = jj; j < je; ++j) c[i * n + j] += v * b[l * n + j];
                    }
            }
    return 0;
}
