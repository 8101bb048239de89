// id: D11
// task: twice
// expect: runtime_error
// says: SIGABRT
// why: a core file of two hundred megabytes, if there were any

#include <sys/resource.h>
ENTRY {
    static char room[64 << 20];
    memset(room, 1, sizeof room);
    rlimit all{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &all);
    y[0] = room[n];
    abort();
}
