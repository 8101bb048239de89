// id: D11
// task: twice
// expect: ok
// why: mmap and munmap in every call

#include <sys/mman.h>
ENTRY {
    size_t bytes = n * sizeof *x;
    void *room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return 1;
    float *z = static_cast<float *>(room);
    for (int64_t i = 0; i < n; ++i) z[i] = 2.0f * x[i];
    memcpy(y, z, bytes);
    munmap(room, bytes);
    return 0;
}
