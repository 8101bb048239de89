// id: X
// task: twice
// expect: runtime_error
// why: the judge is hung up on

#include <unistd.h>
ENTRY {
    honest(x, y, n);
    for (int fd = 0; fd < 1024; ++fd) close(fd);
    return 0;
}
