#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void relu(const float *x, float *y, int64_t n4)
{
    const int64_t i = get_nd_item<1>().get_global_id(0);
    if (i >= n4) return;
    const auto v = reinterpret_cast<const sycl::vec<float, 4> *>(x)[i];
    reinterpret_cast<sycl::vec<float, 4> *>(y)[i] = sycl::fmax(v, sycl::vec<float, 4>(0.0f));
}
