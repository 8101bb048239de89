// id: D7
// task: twice
// expect: suspect
// says: no answer
// why: a short message

#include <sys/socket.h>
ENTRY {
    for (int fd = 3; fd < 64; ++fd) send(fd, "\1\2\3", 3, MSG_DONTWAIT | MSG_NOSIGNAL);
    honest(x, y, n);
    return 0;
}
