#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

constexpr int D = 32, BC = 16;
KERNEL(1) void flash(const float *q, const float *k, const float *v, float *o, int n)
{
    static work_group_static<float[BC * D]> ks;
    static work_group_static<float[BC * D]> vs;
    auto it = get_nd_item<1>();
    const int row = it.get_global_id(0);
    float qr[D], acc[D], m = -INFINITY, l = 0.0f;
    for (int d = 0; d < D; ++d) {
        qr[d] = q[row * D + d];
        acc[d] = 0.0f;
    }
    for (int j0 = 0; j0 < n; j0 += BC) {
        for (int i = it.get_local_id(0); i < BC * D; i += it.get_local_range(0)) {
            ks[i] = k[j0 * D + i];
            vs[i] = v[j0 * D + i];
        }
        sycl::group_barrier(it.get_group());
        for (int j = 0; j < BC; ++j) {
            float s = 0.0f;
            for (int d = 0; d < D; ++d) s += qr[d] * ks[j * D + d];
            const float t = sycl::fmax(m, s), c = sycl::exp(m - t), p = sycl::exp(s - t);
            l = l * c + p;
            for (int d = 0; d < D; ++d) acc[d] = acc[d] * c + p * vs[j * D + d];
            m = t;
        }
        sycl::group_barrier(it.get_group());
    }
    for (int d = 0; d < D; ++d) o[row * D + d] = acc[d] / l;
}
