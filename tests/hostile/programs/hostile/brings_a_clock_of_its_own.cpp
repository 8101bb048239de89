// id: C5
// task: softmax
// expect: ok suspect
// at_most: 0.3
// why: symbols named like the C library's clock functions in the candidate's library

#include <ctime>
#include <unistd.h>
extern "C" int clock_gettime(clockid_t, struct timespec *at) noexcept {
    static long ticks = 0;
    at->tv_sec = 1;
    at->tv_nsec = ++ticks;
    return 0;
}
extern "C" int64_t _PyTime_GetPerfCounter() { return 1; }
ENTRY {
    usleep(3000);
    honest(x, y, rows, cols);
    return 0;
}
