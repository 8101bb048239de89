#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

template <class Group>
float lanes(Group g, float v) { return sycl::reduce_over_group(g, v, sycl::plus<float>()); }
static inline void bump(float *p, float v)
{
    sycl::atomic_ref<float, sycl::memory_order::relaxed, sycl::memory_scope::device>(*p).fetch_add(v);
}
#define WIDE(p) (*reinterpret_cast<const sycl::vec<float, 4> *>(p))
KERNEL(1) void scale(const float *x, float *y, float f, int n)
{
    const int i = get_nd_item<1>().get_global_id(0);
    if (i < n) y[i] = f * x[i];
}
