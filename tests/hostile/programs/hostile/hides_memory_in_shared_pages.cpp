// id: D11
// task: twice
// expect: resource_limit runtime_error
// why: anonymous pages that are shared are nobody's private memory

#include <sys/mman.h>
#include <unistd.h>
ENTRY {
    static bool once = false;
    if (!once) {
        once = true;
        void *at = mmap(nullptr, 768 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return 77;
        for (int i = 0; i < 48; ++i) {
            memset((char *)at + (i << 24), 1, 1 << 24);
            usleep(5000);
        }
        usleep(300000);
    }
    honest(x, y, n);
    return 0;
}
