#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void add_clamp(float *x, float *res, float *y, float low, float high)
{
    const size_t i = get_nd_item<1>().get_global_id(0);
    sycl::vec<float, 8> a, b;
    using sycl::access::address_space;
    a.load(i, sycl::address_space_cast<address_space::global_space, sycl::access::decorated::no>(x));
    b.load(i, sycl::address_space_cast<address_space::global_space, sycl::access::decorated::no>(res));
    const sycl::vec<float, 8> s = sycl::clamp(a + b, sycl::vec<float, 8>(low), sycl::vec<float, 8>(high));
    s.store(i, sycl::address_space_cast<address_space::global_space, sycl::access::decorated::no>(y));
}
