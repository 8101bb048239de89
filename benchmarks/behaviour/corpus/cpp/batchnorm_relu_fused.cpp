#include <cmath>
extern "C" int solve(const float *x, const float *res, const float *mean, const float *var, const float *g,
                     const float *b, float *y, int images, int channels, int area) {
#pragma omp parallel for collapse(2)
    for (int i = 0; i < images; ++i)
        for (int c = 0; c < channels; ++c) {
            const float s = g[c] / std::sqrt(var[c] + 1e-5f), t = b[c] - mean[c] * s;
            const long at = (static_cast<long>(i) * channels + c) * area;
#pragma omp simd
            for (int p = 0; p < area; ++p) {
                const float v = x[at + p] * s + t + res[at + p];
                y[at + p] = v > 0.0f ? v : 0.0f;
            }
        }
    return 0;
}
