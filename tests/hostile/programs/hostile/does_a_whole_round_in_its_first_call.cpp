// id: C9
// task: softmax
// expect: ok suspect incorrect
// at_most: 0.9
// why: contents that lie in memory before their calls are computed in the first one; the others look up, and the least of three samples counts

#include <vector>
#include <deque>
namespace {
struct Set {
    const float *x;
    std::vector<float> y;
    float print[16];
};
std::deque<Set> sets;
void ahead(Set &one, int64_t rows, int64_t cols) {
    memcpy(one.print, one.x, sizeof one.print);
    // Three times the work, so that only a look-up can look fast.
    for (int i = 0; i < 3; ++i) {
        honest(one.x, one.y.data(), rows, cols);
        asm volatile("" ::: "memory");
    }
}
}  // namespace
ENTRY {
    if (cols != 1021 || rows != 37) {
        honest(x, y, rows, cols);
        return 0;
    }
    Set *mine = nullptr;
    for (auto &one : sets)
        if (one.x == x) mine = &one;
    if (!mine) {
        sets.push_back({x, std::vector<float>(rows * cols), {}});
        mine = &sets.back();
    }
    if (memcmp(mine->print, x, sizeof mine->print)) {
        ahead(*mine, rows, cols);
        for (auto &one : sets)
            if (memcmp(one.print, one.x, sizeof one.print)) ahead(one, rows, cols);
    }
    memcpy(y, mine->y.data(), rows * cols * sizeof *y);
    return 0;
}
