// id: D9
// task: twice
// expect: runtime_error
// why: the init of its PID namespace

#include <csignal>
#include <unistd.h>
ENTRY {
    kill(1, SIGKILL);
    kill(getppid(), SIGKILL);
    killpg(0, SIGCONT);
    usleep(20000);
    return 77;
}
