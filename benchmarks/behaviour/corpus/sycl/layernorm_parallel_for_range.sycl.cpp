#include <cmath>
#include <cstddef>
#include <sycl/sycl.hpp>

void layernorm(sycl::queue &q, const float *x, const float *g, const float *b, float *y, size_t rows, size_t cols)
{
    q.parallel_for(sycl::range<1>(rows), [=](sycl::id<1> r) {
        float mean = 0.0f, var = 0.0f;
        for (size_t j = 0; j < cols; ++j) mean += x[r * cols + j];
        mean /= cols;
        for (size_t j = 0; j < cols; ++j) {
            const float d = x[r * cols + j] - mean;
            var += d * d;
        }
        const float rstd = sycl::rsqrt(var / cols + 1e-5f);
        for (size_t j = 0; j < cols; ++j) y[r * cols + j] = (x[r * cols + j] - mean) * rstd * g[j] + b[j];
    }).wait();
}
