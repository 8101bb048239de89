#include <algorithm>
#include <functional>
#include <vector>
extern "C" int topk(const float *x, float *out, int rows, int cols, int k) {
#pragma omp parallel for
    for (int r = 0; r < rows; ++r) {
        std::vector<float> row(x + r * cols, x + (r + 1) * cols);
        std::nth_element(row.begin(), row.begin() + k, row.end(), std::greater<float>());
        std::sort(row.begin(), row.begin() + k, std::greater<float>());
        std::copy_n(row.begin(), k, out + r * k);
    }
    return 0;
}
