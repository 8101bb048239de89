#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sycl/sycl.hpp>

namespace experimental = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
#define KERNEL(D) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<D>))

KERNEL(1) void box(const float *x, float *y, int rows, int cols, int r)
{
    const int row = get_nd_item<1>().get_global_id(0);
    if (row >= rows) return;
    const float *in = x + row * cols;
    float window = 0.0f;
    for (int j = 0; j < r && j < cols; ++j) window += in[j];
    for (int j = 0; j < cols; ++j) {
        if (j + r < cols) window += in[j + r];
        if (j > r) window -= in[j - r - 1];
        y[row * cols + j] = window / (2 * r + 1);
    }
}
