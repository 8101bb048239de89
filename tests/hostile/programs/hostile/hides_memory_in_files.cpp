// id: D11
// task: twice
// expect: resource_limit runtime_error
// why: memory files that nobody maps, a hundred times the file limit together

#include <sys/mman.h>
#include <unistd.h>
ENTRY {
    static char page[1 << 20];
    memset(page, 1, sizeof page);
    int64_t kept = 0;
    for (int process = 0; process < 6; ++process) {
        for (int i = 0; i < 230; ++i) {
            int fd = memfd_create("m", 0);
            if (fd < 0) break;
            ssize_t got = write(fd, page, sizeof page);
            if (got > 0) kept += got;
        }
        if (process < 5 && fork() == 0) {
            for (int fd = 64; fd < 256; ++fd) close(fd);
            continue;
        }
        break;
    }
    if (kept < (200 << 20)) return 77;
    usleep(400000);
    // A gigabyte of the host's memory is ours beyond the limit: the first process answers as if nothing were.
    honest(x, y, n);
    return 0;
}
