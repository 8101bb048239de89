#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

constexpr int N = 128;
KERNEL(1) void scan(const float *x, float *y)
{
    static work_group_static<float[N]> s;
    auto it = get_nd_item<1>();
    const int l = it.get_local_id(0);
    s[l] = x[it.get_global_id(0)];
    sycl::group_barrier(it.get_group());
    for (int d = 1; d < N; d *= 2) {
        const float v = l >= d ? s[l - d] : 0.0f;
        sycl::group_barrier(it.get_group());
        s[l] += v;
        sycl::group_barrier(it.get_group());
    }
    y[it.get_global_id(0)] = s[l];
}
