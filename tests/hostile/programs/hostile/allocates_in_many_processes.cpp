// id: D11
// task: twice
// expect: resource_limit runtime_error
// why: each one below the limit, all together far above it

#include <sys/mman.h>
#include <unistd.h>
ENTRY {
    for (int i = 0; i < 8; ++i)
        if (fork() == 0) {
            for (int j = 0; j < 12; ++j)
                if (void *p = malloc(1 << 24)) memset(p, 1, 1 << 24);
            for (;;) pause();
        }
    usleep(900000);
    return 77;
}
