// id: D7
// task: twice
// expect: suspect
// says: forged
// why: "loaded" before it is, with a guessed nonce

#include <sys/socket.h>
__attribute__((constructor)) static void early() {
    char answer[284] = "kfd1\2";
    for (int fd = 3; fd < 64; ++fd) send(fd, answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL);
}
ENTRY {
    honest(x, y, n);
    return 0;
}
