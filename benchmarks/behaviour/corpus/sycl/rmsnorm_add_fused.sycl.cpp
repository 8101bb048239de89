#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void add_rmsnorm(const float *x, float *res, const float *w, float *y, int cols)
{
    auto it = get_nd_item<1>();
    auto g = it.get_group();
    const int base = it.get_group(0) * cols, step = it.get_local_range(0);
    float ss = 0.0f;
    for (int j = it.get_local_id(0); j < cols; j += step) {
        const float v = x[base + j] + res[base + j];
        res[base + j] = v;
        ss += v * v;
    }
    ss = sycl::reduce_over_group(g, ss, sycl::plus<>());
    const float scale = sycl::rsqrt(ss / cols + 1e-6f);
    for (int j = it.get_local_id(0); j < cols; j += step) y[base + j] = res[base + j] * scale * w[j];
}
