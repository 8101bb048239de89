// id: C14
// task: softmax
// expect: suspect timeout
// why: sleeps in its first calls, which count as work that it might have done, and spins beside others later

#include <atomic>
#include <ctime>
#include <thread>
#include <unistd.h>
static std::atomic<bool> inside{false}, go{false};
static void hog() {
    for (;;) {
        if (go && !inside) for (int i = 0; i < 2000; ++i) asm volatile("");
        else usleep(30);
    }
}
ENTRY {
    inside = true;
    static int calls = 0;
    static bool once = (std::thread(hog).detach(), std::thread(hog).detach(), true);
    if (++calls <= 6) usleep(120000);
    else go = true;
    honest(x, y, rows, cols);
    inside = false;
    return !once;
}
