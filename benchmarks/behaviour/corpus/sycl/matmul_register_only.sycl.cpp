#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(2) void matmul(const float *a, const float *b, float *c, int n, int k)
{
    constexpr int ROWS = 8;
    auto it = get_nd_item<2>();
    const int row = it.get_global_id(0) * ROWS, col = it.get_global_id(1);
    float acc[ROWS];
    for (int i = 0; i < ROWS; ++i) acc[i] = 0.0f;
    for (int l = 0; l < k; ++l) {
        const float v = b[l * n + col];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) acc[i] += a[(row + i) * k + l] * v;
    }
    for (int i = 0; i < ROWS; ++i) c[(row + i) * n + col] = acc[i];
}
