// id: D11
// task: twice
// expect: resource_limit runtime_error
// why: System V segments that are filled and detached belong to no process

#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>
ENTRY {
    static bool once = false;
    if (!once) {
        once = true;
        for (int i = 0; i < 48; ++i) {
            int id = shmget(IPC_PRIVATE, 16 << 20, IPC_CREAT | 0600);
            void *at = id < 0 ? (void *)-1 : shmat(id, nullptr, 0);
            if (at == (void *)-1) return 77;
            memset(at, 1, 16 << 20);
            shmdt(at);
        }
        usleep(300000);
    }
    honest(x, y, n);
    return 0;
}
