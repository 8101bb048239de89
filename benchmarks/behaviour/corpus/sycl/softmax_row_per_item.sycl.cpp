#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    const int64_t r = get_nd_item<1>().get_global_id(0);
    if (r >= rows) return;
    const float *in = x + r * cols;
    float top = in[0];
    for (int64_t j = 1; j < cols; ++j) top = sycl::fmax(top, in[j]);
    float sum = 0.0f;
    for (int64_t j = 0; j < cols; ++j) sum += sycl::exp(in[j] - top);
    for (int64_t j = 0; j < cols; ++j) y[r * cols + j] = sycl::exp(in[j] - top) / sum;
}
