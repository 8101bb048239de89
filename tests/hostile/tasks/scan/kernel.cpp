#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define ENTRY extern "C" int solve(const int32_t *x, int64_t *y, int64_t n)

[[maybe_unused]] static void honest(const int32_t *x, int64_t *y, int64_t n) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) y[i] = sum += x[i];
}
// [EVOLVE_START]
ENTRY {
    honest(x, y, n);
    return 0;
}
// [EVOLVE_END]
