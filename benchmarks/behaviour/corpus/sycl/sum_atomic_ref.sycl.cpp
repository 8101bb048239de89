#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void total(const float *x, float *out, int n)
{
    const int i = get_nd_item<1>().get_global_id(0);
    if (i >= n) return;
    sycl::atomic_ref<float, sycl::memory_order::relaxed, sycl::memory_scope::device> sum(*out);
    sum.fetch_add(x[i]);
}
