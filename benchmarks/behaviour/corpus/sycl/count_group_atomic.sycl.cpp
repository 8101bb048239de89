#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void count(const float *x, int *out, int cols)
{
    static work_group_static<int> total;
    auto it = get_nd_item<1>();
    if (it.get_local_id(0) == 0) total = 0;
    sycl::group_barrier(it.get_group());
    int mine = 0;
    for (int j = it.get_local_id(0); j < cols; j += it.get_local_range(0)) mine += x[it.get_group(0) * cols + j] > 0.0f;
    int &shared = total;
    sycl::atomic_ref<int, sycl::memory_order::relaxed, sycl::memory_scope::work_group>(shared).fetch_add(mine);
    sycl::group_barrier(it.get_group());
    if (it.get_local_id(0) == 0) out[it.get_group(0)] = total;
}
