#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(2) void transpose(const float *x, float *y, int rows, int cols)
{
    auto it = get_nd_item<2>();
    const int i = it.get_global_id(0), j = it.get_global_id(1);
    if (i < rows && j < cols) y[j * rows + i] = x[i * cols + j];
}
