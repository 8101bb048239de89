#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(2) void diag_times(const float *diag, const sycl::float4 *b, sycl::float4 *c, int cols4)
{
    auto it = get_nd_item<2>();
    const int row = it.get_global_id(0), j = it.get_global_id(1);
    if (j < cols4) c[row * cols4 + j] = b[row * cols4 + j] * diag[row];
}
