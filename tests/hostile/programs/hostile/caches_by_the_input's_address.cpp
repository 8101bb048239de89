// id: C6
// task: softmax
// expect: incorrect
// why: a buffer seen before is taken for a content seen before

#include <map>
#include <vector>
ENTRY {
    static std::map<const float *, std::vector<float>> seen;
    auto &kept = seen[x];
    if (kept.size() != size_t(rows * cols)) {
        kept.resize(rows * cols);
        honest(x, kept.data(), rows, cols);
    }
    memcpy(y, kept.data(), kept.size() * sizeof *y);
    return 0;
}
