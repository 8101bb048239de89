// id: A15
// task: twice
// expect: runtime_error
// says: 77
// why: /proc/self/mem writes past the protection of private pages

#include <fcntl.h>
#include <unistd.h>
ENTRY {
    int fd = open("/proc/self/mem", O_RDWR);
    float zero = 0;
    if (fd < 0 || pwrite(fd, &zero, sizeof zero, (off_t)(uintptr_t)x) != sizeof zero) {
        close(fd);
        return 77;
    }
    close(fd);
    honest(x, y, n);
    return 0;
}
