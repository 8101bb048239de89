#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

constexpr int TS = 32, W = 4;
KERNEL(2) void matmul(const float *a, const float *b, float *c, int n, int k)
{
    static work_group_static<float[TS][TS]> sa;
    static work_group_static<float[TS][TS]> sb;
    auto it = get_nd_item<2>();
    const int ly = it.get_local_id(0) * W, lx = it.get_local_id(1) * W;
    const int r0 = it.get_group(0) * TS, c0 = it.get_group(1) * TS;
    float acc[W][W] = {};
    for (int t = 0; t < k; t += TS) {
        for (int i = 0; i < W; ++i)
            for (int j = 0; j < W; ++j) {
                sa[ly + i][lx + j] = a[(r0 + ly + i) * k + t + lx + j];
                sb[ly + i][lx + j] = b[(t + ly + i) * n + c0 + lx + j];
            }
        sycl::group_barrier(it.get_group());
        for (int l = 0; l < TS; ++l)
            for (int i = 0; i < W; ++i)
                for (int j = 0; j < W; ++j) acc[i][j] += sa[ly + i][l] * sb[l][lx + j];
        sycl::group_barrier(it.get_group());
    }
    for (int i = 0; i < W; ++i)
        for (int j = 0; j < W; ++j) c[(r0 + ly + i) * n + c0 + lx + j] = acc[i][j];
}
