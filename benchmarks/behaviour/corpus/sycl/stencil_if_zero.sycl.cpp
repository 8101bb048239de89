#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void blur(const float *x, float *y, int n)
{
    const int i = get_nd_item<1>().get_global_id(0);
#if 0
    static work_group_static<float[66]> s;
    s[get_nd_item<1>().get_local_id(0)] = x[i];
    sycl::group_barrier(get_nd_item<1>().get_group());
    y[i] = sycl::reduce_over_group(get_nd_item<1>().get_sub_group(), x[i], sycl::plus<float>());
#endif
    if (i > 0 && i + 1 < n) y[i] = (x[i - 1] + 2.0f * x[i] + x[i + 1]) * 0.25f;
}
