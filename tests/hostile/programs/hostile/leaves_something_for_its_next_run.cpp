// id: D16
// task: twice
// expect: runtime_error
// says: SIGSYS
// runs: 2
// why: files, shared memory, message queues and sockets that another box would find

#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
ENTRY {
    bool found = shmget(0x6b6664, 4096, 0600) >= 0;
    shmget(0x6b6664, 4096, IPC_CREAT | 0600);
    for (const char *path : {"/tmp/kfd-left", "/dev/shm/kfd-left", "/var/tmp/kfd-left", "/scratch/kfd-left", "/kfd-left"}) {
        found |= access(path, F_OK) == 0;
        int fd = open(path, O_CREAT | O_WRONLY, 0666);
        if (fd >= 0) close(fd);
    }
    int fd = shm_open("/kfd-left", O_RDWR, 0600);
    found |= fd >= 0;
    shm_open("/kfd-left", O_RDWR | O_CREAT, 0600);
    found |= mq_open("/kfd-left", O_RDWR) != (mqd_t)-1;
    mq_open("/kfd-left", O_RDWR | O_CREAT, 0600, nullptr);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    strcpy(to.sun_path + 1, "kfd-left");
    socklen_t size = sizeof(sa_family_t) + 9;
    int line = socket(AF_UNIX, SOCK_STREAM, 0);
    found |= connect(line, (sockaddr *)&to, size) == 0;
    line = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(line, (sockaddr *)&to, size);
    listen(line, 4);
    if (fork() == 0) {
        setsid();
        for (;;) pause();
    }
    if (!found) return 77;
    honest(x, y, n);
    return 0;
}
