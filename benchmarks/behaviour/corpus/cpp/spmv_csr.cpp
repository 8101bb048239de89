#include <cstdint>
extern "C" int spmv(const int64_t *start, const int32_t *col, const float *val, const float *x, float *y, int64_t rows) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t r = 0; r < rows; ++r) {
        float acc = 0.0f;
        for (int64_t e = start[r]; e < start[r + 1]; ++e) acc += val[e] * x[col[e]];
        y[r] = acc;
    }
    return 0;
}
