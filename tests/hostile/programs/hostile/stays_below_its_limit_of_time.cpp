// id: D12
// task: twice
// expect: timeout
// run_ms: 1000
// why: every single call is quick enough, all of them together are not

#include <unistd.h>
ENTRY {
    honest(x, y, n);
    usleep(400000);
    return 0;
}
