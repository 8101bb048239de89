// id: D7
// task: softmax
// expect: incorrect suspect runtime_error timeout
// why: a thread reads the socket before the harness does and answers with the right nonce, nothing computed

#include <sys/socket.h>
#include <thread>
static void serve() {
    static char order[1 << 20];
    for (;;)
        for (int fd = 3; fd < 16; ++fd) {
            if (recv(fd, order, 1, MSG_DONTWAIT | MSG_PEEK) != 1 || order[0] != 'C') continue;
            ssize_t got = recv(fd, order, sizeof order, MSG_DONTWAIT);
            if (got < 16 || order[0] != 'C') continue;
            char answer[284] = "kfd1\4";
            memcpy(answer + 8, order + 8, 8);
            send(fd, answer, sizeof answer, MSG_NOSIGNAL);
        }
}
static bool once = (std::thread(serve).detach(), true);
ENTRY {
    honest(x, y, rows, cols);
    return !once;
}
