// id: D8
// task: twice
// expect: runtime_error suspect
// why: atexit forges an answer, then exit(0)

#include <sys/socket.h>
static void last() {
    char answer[284] = "kfd1\4";
    for (int fd = 3; fd < 64; ++fd) send(fd, answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL);
}
ENTRY {
    honest(x, y, n);
    atexit(last);
    exit(0);
}
