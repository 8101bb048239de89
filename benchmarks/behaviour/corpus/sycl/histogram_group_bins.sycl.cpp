#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void histogram(const uint8_t *x, uint32_t *bins, int n)
{
    static work_group_static<uint32_t[256]> mine;
    auto it = get_nd_item<1>();
    const int l = it.get_local_id(0), size = it.get_local_range(0);
    for (int b = l; b < 256; b += size) mine[b] = 0;
    sycl::group_barrier(it.get_group());
    for (int i = it.get_global_id(0); i < n; i += it.get_global_range(0)) {
        sycl::atomic_ref<uint32_t, sycl::memory_order::relaxed, sycl::memory_scope::work_group> bin(mine[x[i]]);
        bin.fetch_add(1u);
    }
    sycl::group_barrier(it.get_group());
    for (int b = l; b < 256; b += size)
        sycl::atomic_ref<uint32_t, sycl::memory_order::relaxed, sycl::memory_scope::device>(bins[b]).fetch_add(mine[b]);
}
