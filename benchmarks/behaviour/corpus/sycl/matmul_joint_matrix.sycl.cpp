#include <cmath>
#include <cstddef>
#include <sycl/sycl.hpp>

namespace mx = sycl::ext::oneapi::experimental::matrix;
using bf16 = sycl::ext::oneapi::bfloat16;
void matmul(sycl::queue &q, bf16 *a, bf16 *b, float *c, size_t m, size_t n, size_t k)
{
    q.parallel_for(sycl::nd_range<2>({m / 8, n / 16 * 16}, {1, 16}), [=](sycl::nd_item<2> it) {
        auto sg = it.get_sub_group();
        const size_t row = it.get_global_id(0) * 8, col = it.get_group(1) * 16;
        auto pa = sycl::address_space_cast<sycl::access::address_space::global_space, sycl::access::decorated::no>(a);
        auto pb = sycl::address_space_cast<sycl::access::address_space::global_space, sycl::access::decorated::no>(b);
        auto pc = sycl::address_space_cast<sycl::access::address_space::global_space, sycl::access::decorated::no>(c);
        mx::joint_matrix<sycl::sub_group, bf16, mx::use::a, 8, 16, mx::layout::row_major> fa;
        mx::joint_matrix<sycl::sub_group, bf16, mx::use::b, 16, 16, mx::layout::ext_intel_packed> fb;
        mx::joint_matrix<sycl::sub_group, float, mx::use::accumulator, 8, 16> acc;
        mx::joint_matrix_fill(sg, acc, 0.0f);
        for (size_t l = 0; l < k; l += 16) {
            mx::joint_matrix_load(sg, fa, pa + row * k + l, k);
            mx::joint_matrix_load(sg, fb, pb + l * n + col * 2, n * 2);
            mx::joint_matrix_mad(sg, acc, fa, fb, acc);
        }
        mx::joint_matrix_store(sg, acc, pc + row * n + col, n, mx::layout::row_major);
    });
}
