#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

using pack = sycl::float4;
typedef pack lanes_t;
static lanes_t gelu(lanes_t v) { return 0.5f * v * (1.0f + sycl::erf(v * 0.70710678f)); }
KERNEL(1) void bias_gelu_add(const lanes_t *x, const lanes_t *bias, const lanes_t *res, lanes_t *y, int cols4)
{
    const int i = get_nd_item<1>().get_global_id(0);
    y[i] = gelu(x[i] + bias[i % cols4]) + res[i];
}
