#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

struct Stat { float mean, m2, n; };
static Stat merge(Stat p, Stat q)
{
    const float n = p.n + q.n;
    if (n == 0.0f) return p;
    const float d = q.mean - p.mean;
    return {p.mean + d * q.n / n, p.m2 + q.m2 + d * d * p.n * q.n / n, n};
}
KERNEL(1) void layernorm(const float *x, float *y, int cols)
{
    auto it = get_nd_item<1>();
    auto sg = it.get_sub_group();
    const float *in = x + it.get_group(0) * cols;
    const int lane = sg.get_local_linear_id(), width = sg.get_local_linear_range();
    Stat s{0.0f, 0.0f, 0.0f};
    for (int j = lane; j < cols; j += width) {
        s.n += 1.0f;
        const float d = in[j] - s.mean;
        s.mean += d / s.n;
        s.m2 += d * (in[j] - s.mean);
    }
    for (int o = width / 2; o > 0; o /= 2)
        s = merge(s, {sycl::shift_group_left(sg, s.mean, o), sycl::shift_group_left(sg, s.m2, o),
                      sycl::shift_group_left(sg, s.n, o)});
    const float mean = sycl::group_broadcast(sg, s.mean, 0);
    const float rstd = sycl::rsqrt(sycl::group_broadcast(sg, s.m2, 0) / cols + 1e-5f);
    for (int j = lane; j < cols; j += width) y[it.get_group(0) * cols + j] = (in[j] - mean) * rstd;
}
