// id: B2
// task: twice
// expect: ok
// why: try and catch around an allocation, with a way out

#include <new>
ENTRY {
    float *room = nullptr;
    try {
        room = new float[n];
    } catch (const std::bad_alloc &) {
        honest(x, y, n);
        return 0;
    }
    for (int64_t i = 0; i < n; ++i) room[i] = 2.0f * x[i];
    memcpy(y, room, n * sizeof *y);
    delete[] room;
    return 0;
}
