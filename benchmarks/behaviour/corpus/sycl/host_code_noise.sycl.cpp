#include <cmath>
#include <cstddef>
#include <sycl/sycl.hpp>

#include <atomic>
#include <vector>
static std::atomic<int> launches{0};
struct Settings { sycl::float4 padding; int sub_group_size; };
void tanh_kernel(sycl::queue &q, const float *x, float *y, size_t n)
{
    Settings settings{sycl::float4(0.0f), 32};
    std::vector<sycl::float4> shared_tiles(8, settings.padding);
    launches.fetch_add(static_cast<int>(shared_tiles.size()));
    q.ext_oneapi_submit_barrier();
    q.parallel_for(sycl::range<1>(n), [=](sycl::id<1> i) { y[i] = sycl::tanh(x[i]); }).wait();
}
