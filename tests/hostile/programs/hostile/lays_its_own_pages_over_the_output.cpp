// id: A14
// task: twice
// expect: incorrect
// says: never written
// why: what it writes then never reaches the shared memory

#include <sys/mman.h>
ENTRY {
    uintptr_t from = (uintptr_t)y & ~4095ul, to = ((uintptr_t)(y + n) + 4095) & ~4095ul;
    void *at = mmap((void *)from, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (at == MAP_FAILED) return 77;
    honest(x, y, n);
    return 0;
}
