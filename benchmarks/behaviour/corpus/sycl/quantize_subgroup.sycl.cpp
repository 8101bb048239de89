#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void quantize(const float *x, int8_t *q, float *scales, int cols)
{
    auto it = get_nd_item<1>();
    auto sg = it.get_sub_group();
    const float *in = x + it.get_group(0) * cols;
    float top = 0.0f;
    for (int j = sg.get_local_linear_id(); j < cols; j += sg.get_local_linear_range()) top = sycl::fmax(top, sycl::fabs(in[j]));
    top = sycl::reduce_over_group(sg, top, sycl::maximum<float>());
    const float s = top / 127.0f;
    if (sg.leader()) scales[it.get_group(0)] = s;
    for (int j = sg.get_local_linear_id(); j < cols; j += sg.get_local_linear_range())
        q[it.get_group(0) * cols + j] = static_cast<int8_t>(sycl::rint(in[j] / s));
}
