#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void scan(const float *x, float *y, int n)
{
    auto it = get_nd_item<1>();
    const int i = it.get_global_id(0);
    const float v = i < n ? x[i] : 0.0f;
    const float s = sycl::inclusive_scan_over_group(it.get_group(), v, sycl::plus<float>());
    if (i < n) y[i] = s;
}
