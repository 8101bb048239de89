#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void conv3(const float *x, const float *g, float *y, int n)
{
    const int i = get_nd_item<1>().get_global_id(0) * 2;
    if (i + 3 >= n) return;
    const float gs = 0.5f * (g[0] + g[1] + g[2]), gd = 0.5f * (g[0] - g[1] + g[2]);
    const float m1 = (x[i] - x[i + 2]) * g[0];
    const float m2 = (x[i + 1] + x[i + 2]) * gs;
    const float m3 = (x[i + 2] - x[i + 1]) * gd;
    const float m4 = (x[i + 1] - x[i + 3]) * g[2];
    y[i] = m1 + m2 + m3;
    y[i + 1] = m2 - m3 - m4;
}
