// id: D9
// task: twice
// expect: runtime_error
// says: 77
// why: every process it may signal, then its parent, its group and the box's first

#include <csignal>
#include <unistd.h>
ENTRY {
    signal(SIGTERM, SIG_IGN);
    kill(-1, SIGTERM);
    for (int pid = 2; pid < 300; ++pid)
        if (pid != getpid()) kill(pid, SIGKILL);
    return 77;
}
