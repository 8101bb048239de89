// id: X
// task: twice
// expect: runtime_error timeout
// run_ms: 1000
// why: half closed, then asleep

#include <sys/socket.h>
#include <unistd.h>
ENTRY {
    for (int fd = 3; fd < 64; ++fd) shutdown(fd, SHUT_RDWR);
    for (;;) pause();
}
