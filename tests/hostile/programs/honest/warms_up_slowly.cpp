// id: C25
// task: twice
// expect: ok
// why: its first call does more: it tries two block sizes once and keeps the better

#include <chrono>
static void blocked(const float *x, float *y, int64_t n, int64_t size) {
    for (int64_t b = 0; b < n; b += size)
        for (int64_t i = b; i < std::min(n, b + size); ++i) y[i] = 2.0f * x[i];
}
ENTRY {
    static int64_t best = 0;
    if (!best) {
        double least = 1e9;
        for (int64_t size : {256, 4096}) {
            auto began = std::chrono::steady_clock::now();
            blocked(x, y, n, size);
            double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
            if (took < least) least = took, best = size;
        }
    }
    blocked(x, y, n, best);
    return 0;
}
