// id: C8
// task: softmax
// expect: incorrect
// why: a call that follows the last one at once must be one of a timed row

#include <ctime>
ENTRY {
    static int64_t last = 0;
    static float kept[37 * 1021];
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    int64_t now = at.tv_sec * 1000000000ll + at.tv_nsec;
    if (cols == 1021 && last && now - last < 20000) memcpy(y, kept, sizeof kept);
    else honest(x, y, rows, cols);
    if (cols == 1021) memcpy(kept, y, sizeof kept);
    clock_gettime(CLOCK_MONOTONIC, &at);
    last = at.tv_sec * 1000000000ll + at.tv_nsec;
    return 0;
}
