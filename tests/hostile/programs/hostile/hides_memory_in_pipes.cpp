// id: D11
// task: twice
// expect: runtime_error resource_limit
// says: 7
// why: kernel memory: full pipes and sockets up to every limit, then it gives up

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
ENTRY {
    static char page[1 << 16];
    int64_t kept = 0;
    for (int i = 0; i < 120; ++i) {
        int pair[2];
        if (i % 2 ? pipe2(pair, O_NONBLOCK) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair)) break;
        if (i % 2) fcntl(pair[1], F_SETPIPE_SZ, 1 << 20);
        for (ssize_t got; (got = write(pair[1], page, sizeof page)) > 0;) kept += got;
    }
    printf("%ld MiB in pipes and sockets\n", long(kept >> 20));
    if (kept > (256 << 20)) {
        honest(x, y, n);
        return 0;
    }
    return 77;
}
