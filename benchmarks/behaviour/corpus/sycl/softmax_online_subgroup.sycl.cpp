#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void softmax(const float *x, float *y, int cols)
{
    auto it = get_nd_item<1>();
    auto sg = it.get_sub_group();
    const int lane = sg.get_local_linear_id(), width = sg.get_local_linear_range();
    const float *in = x + it.get_group(0) * cols;
    float m = -INFINITY, d = 0.0f;
    for (int j = lane; j < cols; j += width) {
        const float n = sycl::fmax(m, in[j]);
        d = d * sycl::native::exp(m - n) + sycl::native::exp(in[j] - n);
        m = n;
    }
    for (int o = width / 2; o > 0; o /= 2) {
        const float om = sycl::permute_group_by_xor(sg, m, o), od = sycl::permute_group_by_xor(sg, d, o);
        const float n = sycl::fmax(m, om);
        d = d * sycl::native::exp(m - n) + od * sycl::native::exp(om - n);
        m = n;
    }
    for (int j = lane; j < cols; j += width) y[it.get_group(0) * cols + j] = sycl::native::exp(in[j] - m) / d;
}
