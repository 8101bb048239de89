// id: X
// task: twice
// expect: runtime_error
// says: SIGSEGV
// why: the next call has nothing to work on

#include <sys/mman.h>
ENTRY {
    honest(x, y, n);
    uintptr_t from = (uintptr_t)y & ~4095ul;
    munmap((void *)from, 1 << 20);
    munmap((void *)((uintptr_t)x & ~4095ul), 1 << 20);
    memset(y, 0, 4);
    return 0;
}
