// id: C2
// task: scan
// expect: ok
// why: std::async, every future waited for

#include <future>
ENTRY {
    int64_t half = n / 2;
    auto first = std::async(std::launch::async, [=] { honest(x, y, half); });
    honest(x + half, y + half, n - half);
    first.get();
    int64_t before = half ? y[half - 1] : 0;
    for (int64_t i = half; i < n; ++i) y[i] += before;
    return 0;
}
