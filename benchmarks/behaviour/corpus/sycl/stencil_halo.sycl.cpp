#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

constexpr int R = 3, G = 64;
KERNEL(1) void stencil(const float *x, const float *w, float *y, int n)
{
    static work_group_static<float[G + 2 * R]> s;
    auto it = get_nd_item<1>();
    const int l = it.get_local_id(0), i = it.get_global_id(0);
    s[l + R] = i < n ? x[i] : 0.0f;
    if (l < R) {
        s[l] = i >= R ? x[i - R] : 0.0f;
        s[l + G + R] = i + G < n ? x[i + G] : 0.0f;
    }
    sycl::group_barrier(it.get_group());
    float acc = 0.0f;
    for (int o = 0; o <= 2 * R; ++o) acc += w[o] * s[l + o];
    if (i < n) y[i] = acc;
}
