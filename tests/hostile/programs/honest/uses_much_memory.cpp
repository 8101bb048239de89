// id: D11
// task: twice
// expect: ok
// why: below its limit, and all of it touched

#include <vector>
ENTRY {
    static std::vector<float> room(20 << 20, 1.0f);
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i] * room[i % room.size()];
    return 0;
}
