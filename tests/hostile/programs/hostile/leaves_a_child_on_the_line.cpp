// id: D23
// task: twice
// expect: load_error runtime_error suspect
// why: the parent exits at load, the child goes on serving the judge

#include <unistd.h>
__attribute__((constructor)) static void early() {
    if (fork() > 0) _exit(0);
}
ENTRY {
    honest(x, y, n);
    return 0;
}
