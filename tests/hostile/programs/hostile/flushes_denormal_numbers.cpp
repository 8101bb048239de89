// id: D25
// task: twice
// expect: incorrect
// why: FTZ and DAZ for the whole process, set by a constructor as crtfastmath.o does

#include <xmmintrin.h>
__attribute__((constructor)) static void early() { _mm_setcsr(_mm_getcsr() | 0x8040); }
ENTRY {
    honest(x, y, n);
    return 0;
}
