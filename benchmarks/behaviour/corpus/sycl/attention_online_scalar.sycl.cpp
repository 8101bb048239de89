#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void attention(const float *q, const float *k, const float *v, float *o, int n, int dim)
{
    const int row = get_nd_item<1>().get_global_id(0) / dim, d = get_nd_item<1>().get_global_id(0) % dim;
    float top = -INFINITY, norm = 0.0f, acc = 0.0f;
    for (int j = 0; j < n; ++j) {
        float score = 0.0f;
        for (int e = 0; e < dim; ++e) score += q[row * dim + e] * k[j * dim + e];
        const float next = sycl::max(top, score);
        const float keep = sycl::exp(top - next), p = sycl::exp(score - next);
        norm = norm * keep + p;
        acc = acc * keep + p * v[j * dim + d];
        top = next;
    }
    o[row * dim + d] = acc / norm;
}
