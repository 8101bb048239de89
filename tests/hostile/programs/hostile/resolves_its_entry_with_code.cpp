// id: D20
// task: twice
// expect: load_error
// says: exited with code 0
// why: an ifunc resolver runs while the library is being linked

#include <unistd.h>
extern "C" {
static int real(const float *x, float *y, int64_t n) {
    honest(x, y, n);
    return 0;
}
static void *choose() {
    syscall(231, 0);
    return (void *)real;
}
int solve(const float *, float *, int64_t) __attribute__((ifunc("choose")));
}
