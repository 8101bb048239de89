// id: E17
// task: scan
// expect: ok
// why: std::function, lambdas, templates

#include <functional>
#include <numeric>
template <class F> static void each(int64_t n, F &&f) {
    for (int64_t i = 0; i < n; ++i) f(i);
}
ENTRY {
    std::function<int64_t(int64_t, int32_t)> plus = [](int64_t a, int32_t b) { return a + b; };
    int64_t sum = 0;
    each(n, [&](int64_t i) { y[i] = sum = plus(sum, x[i]); });
    return 0;
}
