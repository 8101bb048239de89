// id: D8
// task: twice
// expect: load_error
// says: SIGSYS
// why: execve: the harness is gone, and whatever came instead is content

#include <unistd.h>
__attribute__((constructor)) static void early() { execl("/bin/sh", "sh", "-c", "exit 0", (char *)nullptr); }
ENTRY {
    honest(x, y, n);
    return 0;
}
