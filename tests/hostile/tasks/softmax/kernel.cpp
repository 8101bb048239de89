#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define ENTRY extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols)

[[maybe_unused]] static void honest(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0], sum = 0.0f;
        for (int64_t c = 1; c < cols; ++c) top = std::max(top, x[c]);
        for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
    }
}
// [EVOLVE_START]
ENTRY {
    honest(x, y, rows, cols);
    return 0;
}
// [EVOLVE_END]
