// id: X
// task: twice
// expect: runtime_error timeout
// run_ms: 1000
// why: dup2 of a pair of its own over the harness's descriptor

#include <sys/socket.h>
#include <unistd.h>
ENTRY {
    int pair[2];
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    for (int fd = 3; fd < 32; ++fd)
        if (fd != pair[0] && fd != pair[1]) dup2(pair[0], fd);
    honest(x, y, n);
    return 0;
}
