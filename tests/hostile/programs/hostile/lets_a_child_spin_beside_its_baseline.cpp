// id: C14
// task: twice
// expect: load_error
// why: a process instead of a thread

#include <unistd.h>
__attribute__((constructor)) static void early() {
    for (int i = 0; i < 2; ++i)
        if (fork() == 0)
            for (;;) asm volatile("");
}
ENTRY {
    honest(x, y, n);
    return 0;
}
