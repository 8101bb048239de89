// id: D8
// task: twice
// expect: ok
// why: exceptions as control flow, none leaves

#include <stdexcept>
static void block(const float *x, float *y, int64_t n) {
    if (n < 16) throw std::length_error("too short for a block");
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];
}
ENTRY {
    try {
        block(x, y, n);
    } catch (const std::length_error &) {
        honest(x, y, n);
    }
    return 0;
}
