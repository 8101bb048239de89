#include <cmath>
#include <cstddef>
#include <sycl/sycl.hpp>

void matmul(sycl::queue &q, const float *a, const float *b, float *c, size_t n)
{
    constexpr size_t T = 16;
    q.submit([&](sycl::handler &h) {
        sycl::local_accessor<float, 2> ta(sycl::range<2>(T, T), h), tb(sycl::range<2>(T, T), h);
        h.parallel_for(sycl::nd_range<2>({n, n}, {T, T}), [=](sycl::nd_item<2> it) {
            const size_t row = it.get_global_id(0), col = it.get_global_id(1);
            const size_t ly = it.get_local_id(0), lx = it.get_local_id(1);
            float acc = 0.0f;
            for (size_t t = 0; t < n; t += T) {
                ta[ly][lx] = a[row * n + t + lx];
                tb[ly][lx] = b[(t + ly) * n + col];
                sycl::group_barrier(it.get_group());
                for (size_t l = 0; l < T; ++l) acc += ta[ly][l] * tb[l][lx];
                sycl::group_barrier(it.get_group());
            }
            c[row * n + col] = acc;
        });
    }).wait();
}
