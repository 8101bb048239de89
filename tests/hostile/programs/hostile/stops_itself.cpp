// id: D12
// task: twice
// expect: timeout
// run_ms: 1000
// why: SIGSTOP

#include <csignal>
ENTRY {
    raise(SIGSTOP);
    honest(x, y, n);
    return 0;
}
