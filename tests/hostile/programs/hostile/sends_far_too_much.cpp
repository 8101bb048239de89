// id: D7
// task: twice
// expect: suspect
// says: no answer
// why: a message larger than any buffer of ours

#include <sys/socket.h>
ENTRY {
    static char junk[150000];
    for (int fd = 3; fd < 64; ++fd) send(fd, junk, sizeof junk, MSG_DONTWAIT | MSG_NOSIGNAL);
    honest(x, y, n);
    return 0;
}
