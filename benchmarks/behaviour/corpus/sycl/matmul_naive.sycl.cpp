#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(2) void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    auto it = get_nd_item<2>();
    const int i = it.get_global_id(0), j = it.get_global_id(1);
    if (i >= m || j >= n) return;
    float acc = 0.0f;
    for (int l = 0; l < k; ++l) acc += a[i * k + l] * b[l * n + j];
    c[i * n + j] = acc;
}
