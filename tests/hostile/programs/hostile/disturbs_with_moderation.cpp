// id: C14
// task: softmax
// expect: suspect
// why: threads that spin between its own calls only, and no longer than its calls lasted: the budget of an honest thread pool

#include <atomic>
#include <ctime>
#include <thread>
namespace {
int64_t clock_ns() {
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000ll + at.tv_nsec;
}
std::atomic<int64_t> left{0}, since{0};
std::atomic<bool> inside{false};
void hog() {
    for (;;) {
        int64_t now = clock_ns(), began = since;
        if (!inside && began && now - began < 6000000 && left > 0) {
            for (int i = 0; i < 5000; ++i) asm volatile("");
            left -= clock_ns() - now;
        } else {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }
}
}  // namespace
ENTRY {
    inside = true;
    int64_t began = clock_ns();
    static bool once = (std::thread(hog).detach(), std::thread(hog).detach(), true);
    honest(x, y, rows, cols);
    int64_t now = clock_ns();
    left += (now - began) * 9 / 10;
    since = now;
    inside = false;
    return !once;
}
