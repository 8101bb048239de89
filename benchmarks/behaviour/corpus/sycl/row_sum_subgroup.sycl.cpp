#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void row_sum(const float *x, float *y, int cols)
{
    auto it = get_nd_item<1>();
    auto sg = it.get_sub_group();
    float v = 0.0f;
    for (int j = sg.get_local_linear_id(); j < cols; j += sg.get_local_linear_range()) v += x[it.get_group(0) * cols + j];
    v = sycl::reduce_over_group(sg, v, sycl::plus<float>());
    if (sg.leader()) y[it.get_group(0)] = v;
}
