// id: C14
// task: twice
// expect: runtime_error
// says: SIGSYS
// why: real-time class, negative niceness, locked memory: privileges that would starve the others

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
ENTRY {
    sched_param first{};
    first.sched_priority = 1;
    bool got = sched_setscheduler(0, SCHED_FIFO, &first) == 0 || setpriority(PRIO_PROCESS, 0, -5) == 0;
    rlimit more{RLIM_INFINITY, RLIM_INFINITY};
    got |= setrlimit(RLIMIT_NPROC, &more) == 0 || setrlimit(RLIMIT_FSIZE, &more) == 0;
    if (!got) return 77;
    honest(x, y, n);
    return 0;
}
