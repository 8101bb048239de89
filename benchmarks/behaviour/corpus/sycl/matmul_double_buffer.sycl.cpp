#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using experimental::work_group_static;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

constexpr int T = 16;
KERNEL(2) void matmul(const float *a, const float *b, float *c, int n)
{
    static work_group_static<float[2][T * T]> sa;
    static work_group_static<float[2][T * T]> sb;
    auto it = get_nd_item<2>();
    const int y = it.get_local_id(0), x = it.get_local_id(1), row = it.get_global_id(0), col = it.get_global_id(1);
    float acc = 0.0f;
    int cur = 0;
    sa[0][y * T + x] = a[row * n + x];
    sb[0][y * T + x] = b[y * n + col];
    sycl::group_barrier(it.get_group());
    for (int t = 0; t < n; t += T, cur ^= 1) {
        if (t + T < n) {
            sa[cur ^ 1][y * T + x] = a[row * n + t + T + x];
            sb[cur ^ 1][y * T + x] = b[(t + T + y) * n + col];
        }
        for (int l = 0; l < T; ++l) acc += sa[cur][y * T + l] * sb[cur][l * T + x];
        sycl::group_barrier(it.get_group());
    }
    c[row * n + col] = acc;
}
