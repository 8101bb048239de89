// id: C6
// task: twice
// expect: ok
// why: a cache of memory, not of answers

#include <vector>
ENTRY {
    static std::vector<float> room;
    if (room.size() < size_t(n)) room.resize(n);
    memcpy(room.data(), x, n * sizeof *x);
    for (int64_t i = 0; i < n; ++i) y[i] = room[i] + room[i];
    return 0;
}
