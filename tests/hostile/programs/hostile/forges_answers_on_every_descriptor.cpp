// id: D7
// task: twice
// expect: suspect
// says: forged
// why: sends a "done" with nonce 0 wherever something can be sent to

#include <sys/socket.h>
ENTRY {
    char answer[284] = "kfd1\4";
    for (int fd = 3; fd < 64; ++fd) send(fd, answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL);
    honest(x, y, n);
    return 0;
}
