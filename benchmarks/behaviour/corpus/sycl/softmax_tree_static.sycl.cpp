#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void softmax(const float *x, float *y, int cols)
{
    static work_group_static<float[128]> parts;
    auto it = get_nd_item<1>();
    const int l = it.get_local_id(0);
    const float *in = x + it.get_group(0) * cols;
    float v = -INFINITY;
    for (int j = l; j < cols; j += 128) v = sycl::fmax(v, in[j]);
    parts[l] = v;
    sycl::group_barrier(it.get_group());
    for (int h = 64; h > 0; h /= 2) {
        if (l < h) parts[l] = sycl::fmax(parts[l], parts[l + h]);
        sycl::group_barrier(it.get_group());
    }
    const float top = parts[0];
    sycl::group_barrier(it.get_group());
    v = 0.0f;
    for (int j = l; j < cols; j += 128) v += sycl::exp(in[j] - top);
    parts[l] = v;
    sycl::group_barrier(it.get_group());
    for (int h = 64; h > 0; h /= 2) {
        if (l < h) parts[l] += parts[l + h];
        sycl::group_barrier(it.get_group());
    }
    for (int j = l; j < cols; j += 128) y[it.get_group(0) * cols + j] = sycl::exp(in[j] - top) / parts[0];
}
