#include <cmath>
#include <cstddef>
#include <sycl/sycl.hpp>

void softmax(sycl::queue &q, const float *x, float *y, size_t rows, size_t cols)
{
    q.parallel_for(sycl::nd_range<1>(rows * 256, 256), [=](sycl::nd_item<1> it) {
        auto g = it.get_group();
        const float *in = x + g.get_group_id(0) * cols;
        float top = -INFINITY;
        for (size_t j = it.get_local_id(0); j < cols; j += it.get_local_range(0)) top = sycl::fmax(top, in[j]);
        top = sycl::reduce_over_group(g, top, sycl::maximum<float>());
        float sum = 0.0f;
        for (size_t j = it.get_local_id(0); j < cols; j += it.get_local_range(0)) sum += sycl::exp(in[j] - top);
        sum = sycl::reduce_over_group(g, sum, sycl::plus<float>());
        float *out = y + g.get_group_id(0) * cols;
        for (size_t j = it.get_local_id(0); j < cols; j += it.get_local_range(0)) out[j] = sycl::exp(in[j] - top) / sum;
    });
}
