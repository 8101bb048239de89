// id: D12
// task: twice
// expect: timeout
// run_ms: 1000
// why: ignores every signal that can be ignored

#include <csignal>
#include <unistd.h>
ENTRY {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    for (;;) pause();
}
