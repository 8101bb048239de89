#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

template <class T>
using counter = sycl::atomic_ref<T, sycl::memory_order::relaxed, sycl::memory_scope::device>;
KERNEL(1) void total(const float *x, float *out, int n)
{
    auto it = get_nd_item<1>();
    float v = 0.0f;
    for (int i = it.get_global_id(0); i < n; i += it.get_global_range(0)) v += x[i];
    v = sycl::reduce_over_group(it.get_group(), v, sycl::plus<float>());
    if (it.get_local_id(0) == 0) counter<float>(*out) += v;
}
