// id: D23
// task: twice
// expect: runtime_error
// says: SIGSYS
// why: two forks, a session of its own, signals ignored, all pipes held

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
ENTRY {
    if (fork() == 0) {
        setsid();
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        if (fork() == 0)
            for (;;) asm volatile("");
        _exit(0);
    }
    return 77;
}
