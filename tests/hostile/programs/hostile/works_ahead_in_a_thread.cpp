// id: C9
// task: softmax
// expect: suspect incorrect
// why: a thread looks for new contents in buffers it knows and computes them before their call

#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>
namespace {
struct Set {
    const float *x = nullptr;
    std::vector<float> y;
    float print[16];
    std::atomic<bool> ready{false};
};
Set sets[256];
std::atomic<int> count{0};
void ahead(Set &one, int64_t rows, int64_t cols) {
    memcpy(one.print, one.x, sizeof one.print);
    for (int i = 0; i < 3; ++i) {
        honest(one.x, one.y.data(), rows, cols);
        asm volatile("" ::: "memory");
    }
    one.ready = true;
}
void watch(int64_t rows, int64_t cols) {
    for (;; usleep(300))
        for (int i = 0, n = count; i < n; ++i)
            if (memcmp(sets[i].print, sets[i].x, sizeof sets[i].print)) {
                sets[i].ready = false;
                usleep(50);
                ahead(sets[i], rows, cols);
            }
}
}  // namespace
ENTRY {
    if (cols != 1021 || rows != 37) {
        honest(x, y, rows, cols);
        return 0;
    }
    static bool once = (std::thread(watch, rows, cols).detach(), true);
    int i = 0, n = count;
    while (i < n && sets[i].x != x) ++i;
    if (once && i < n && sets[i].ready && !memcmp(sets[i].print, x, sizeof sets[i].print)) {
        memcpy(y, sets[i].y.data(), rows * cols * sizeof *y);
        return 0;
    }
    for (int j = 0; j < 3; ++j) {
        honest(x, y, rows, cols);
        asm volatile("" ::: "memory");
    }
    if (i == n && n < 256) {
        sets[n].x = x;
        sets[n].y.resize(rows * cols);
        memcpy(sets[n].print, x, sizeof sets[n].print);
        count = n + 1;
    }
    return 0;
}
