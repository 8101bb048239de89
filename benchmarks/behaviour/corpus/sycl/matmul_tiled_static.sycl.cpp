#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

constexpr int TILE = 8;
KERNEL(2) void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    static work_group_static<float[TILE][TILE]> as;
    static work_group_static<float[TILE][TILE]> bs;
    auto it = get_nd_item<2>();
    const int y = it.get_local_id(0), x = it.get_local_id(1), row = it.get_global_id(0), col = it.get_global_id(1);
    float acc = 0.0f;
    for (int t = 0; t < k; t += TILE) {
        as[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        bs[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
        sycl::group_barrier(it.get_group());
        for (int l = 0; l < TILE; ++l) acc = sycl::fma(as[y][l], bs[l][x], acc);
        it.barrier(sycl::access::fence_space::local_space);
    }
    if (row < m && col < n) c[row * n + col] = acc;
}
