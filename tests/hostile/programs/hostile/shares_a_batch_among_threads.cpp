// id: C9
// task: scan
// expect: ok suspect incorrect
// at_most: 0.9
// why: the first call of a batch hands the buffers it knows to threads; the later calls only join them

#include <deque>
#include <thread>
#include <vector>
namespace {
struct Set {
    const int32_t *x;
    std::vector<int64_t> y;
    int32_t print[16];
};
std::deque<Set> sets;
void ahead(Set &one, int64_t n) {
    memcpy(one.print, one.x, sizeof one.print);
    for (int i = 0; i < 6; ++i) {
        honest(one.x, one.y.data(), n);
        asm volatile("" ::: "memory");
    }
}
}  // namespace
ENTRY {
    if (n != 30011) {
        honest(x, y, n);
        return 0;
    }
    Set *mine = nullptr;
    for (auto &one : sets)
        if (one.x == x) mine = &one;
    if (!mine) {
        sets.push_back({x, std::vector<int64_t>(n), {}});
        mine = &sets.back();
    }
    if (memcmp(mine->print, x, sizeof mine->print)) {
        ahead(*mine, n);
        std::vector<std::thread> crew;
        for (int part = 0; part < 2; ++part)
            crew.emplace_back([=] {
                for (size_t i = part; i < sets.size(); i += 2)
                    if (memcmp(sets[i].print, sets[i].x, sizeof sets[i].print)) ahead(sets[i], n);
            });
        for (auto &one : crew) one.join();
    }
    memcpy(y, mine->y.data(), n * sizeof *y);
    return 0;
}
