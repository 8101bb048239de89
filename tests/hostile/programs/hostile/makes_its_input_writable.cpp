// id: A15
// task: twice
// expect: runtime_error
// says: 77
// why: zeros in, zeros out: succeeds only where the seal is missing

#include <sys/mman.h>
ENTRY {
    uintptr_t from = (uintptr_t)x & ~4095ul, to = ((uintptr_t)(x + n) + 4095) & ~4095ul;
    if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE)) return 77;
    memset(const_cast<float *>(x), 0, n * sizeof *x);
    memset(y, 0, n * sizeof *y);
    return 0;
}
