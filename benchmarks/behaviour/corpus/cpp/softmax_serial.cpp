#include <cmath>
#include <cstdint>
extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) {
        float top = x[i * cols];
        for (int64_t j = 1; j < cols; ++j) top = x[i * cols + j] > top ? x[i * cols + j] : top;
        double sum = 0.0;
        for (int64_t j = 0; j < cols; ++j) sum += std::exp(x[i * cols + j] - top);
        for (int64_t j = 0; j < cols; ++j) y[i * cols + j] = std::exp(x[i * cols + j] - top) / (float)sum;
    }
    return 0;
}
