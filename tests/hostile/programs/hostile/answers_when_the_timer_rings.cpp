// id: C21
// task: twice
// expect: runtime_error
// why: a signal handler does the work a little later

#include <csignal>
#include <sys/time.h>
static const float *from;
static float *to;
static int64_t count;
static void ring(int) { honest(from, to, count); }
ENTRY {
    from = x, to = y, count = n;
    signal(SIGALRM, ring);
    itimerval soon{};
    soon.it_value.tv_usec = 1500;
    setitimer(ITIMER_REAL, &soon, nullptr);
    return 0;
}
