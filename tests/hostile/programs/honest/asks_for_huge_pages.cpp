// id: D11
// task: twice
// expect: ok
// why: madvise on scratch of its own, kept between calls

#include <sys/mman.h>
ENTRY {
    static float *room = nullptr;
    if (!room) {
        void *at = mmap(nullptr, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return 1;
        madvise(at, 8 << 20, MADV_HUGEPAGE);
        room = static_cast<float *>(at);
    }
    for (int64_t i = 0; i < n; ++i) room[i] = x[i];
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * room[i];
    return 0;
}
