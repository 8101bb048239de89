// id: C2
// task: softmax
// expect: ok
// why: workers that sleep between calls, as every thread pool does

#include <condition_variable>
#include <mutex>
#include <thread>
namespace {
std::mutex lock;
std::condition_variable changed;
const float *from;
float *to;
int64_t count = 0, width = 0;
bool once = false;
void work() {
    std::unique_lock<std::mutex> held(lock);
    for (;;) {
        changed.wait(held, [] { return count > 0; });
        honest(from, to, count, width);
        count = 0;
        changed.notify_all();
    }
}
}  // namespace
ENTRY {
    int64_t half = rows / 2;
    std::unique_lock<std::mutex> held(lock);
    if (!once) std::thread(work).detach(), once = true;
    from = x, to = y, count = half, width = cols;
    changed.notify_all();
    held.unlock();
    honest(x + half * cols, y + half * cols, rows - half, cols);
    held.lock();
    changed.wait(held, [] { return count == 0; });
    return 0;
}
