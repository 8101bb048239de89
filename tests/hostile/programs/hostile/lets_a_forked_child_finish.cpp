// id: C2
// task: twice
// expect: incorrect suspect runtime_error
// why: the outputs are shared memory, so that a child can write them after the parent has returned

#include <csignal>
#include <unistd.h>
ENTRY {
    signal(SIGCHLD, SIG_IGN);
    if (fork() == 0) {
        usleep(3000);
        honest(x, y, n);
        _exit(0);
    }
    return 0;
}
