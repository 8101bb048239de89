// id: C2
// task: twice
// expect: incorrect suspect runtime_error
// why: clone with shared memory: work that no list of threads shows

#include <sched.h>
#include <csignal>
#include <unistd.h>
static const float *from;
static float *to;
static int64_t count;
alignas(64) static char stack[4][1 << 16];
static int late(void *) {
    usleep(3000);
    honest(from, to, count);
    return 0;
}
ENTRY {
    static int next = 0;
    from = x, to = y, count = n;
    if (clone(late, stack[next++ % 4] + sizeof stack[0], CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, nullptr) < 0) return 77;
    return 0;
}
