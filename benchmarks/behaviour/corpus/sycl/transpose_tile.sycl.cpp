#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(2) void transpose(const float *x, float *y, int rows, int cols)
{
    static work_group_static<float[16][17]> tile;
    auto it = get_nd_item<2>();
    const int ly = it.get_local_id(0), lx = it.get_local_id(1);
    int i = it.get_group(0) * 16 + ly, j = it.get_group(1) * 16 + lx;
    if (i < rows && j < cols) tile[ly][lx] = x[i * cols + j];
    sycl::group_barrier(it.get_group());
    i = it.get_group(1) * 16 + ly;
    j = it.get_group(0) * 16 + lx;
    if (i < cols && j < rows) y[i * rows + j] = tile[lx][ly];
}
