#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void relu(const float *x, float *y, int64_t n)
{
    const int64_t i = get_nd_item<1>().get_global_id(0);
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
