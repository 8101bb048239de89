#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define ENTRY extern "C" int solve(const float *x, float *y, int64_t n)

[[maybe_unused]] static void honest(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];
}
// [EVOLVE_START]
ENTRY {
    honest(x, y, n);
    return 0;
}
// [EVOLVE_END]
