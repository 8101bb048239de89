#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void gelu_mask(const float *x, const float *bias, const float *mask, float *y, int cols, int n)
{
    const int i = get_nd_item<1>().get_global_id(0);
    if (i >= n) return;
    const float v = x[i] + bias[i % cols];
    const float g = 0.5f * v * (1.0f + sycl::tanh(0.79788456f * (v + 0.044715f * v * v * v)));
    y[i] = g * mask[i];
}
