// id: C7
// task: softmax
// expect: incorrect
// why: a hash of shape, signs and ranks of a few elements; many contents share one

#include <map>
#include <vector>
ENTRY {
    static std::map<std::pair<int64_t, int>, std::vector<float>> seen;
    int print = (x[0] > x[rows * cols / 2]) | (x[0] > x[rows * cols - 1]) << 1;
    auto &kept = seen[{rows * 10000 + cols, print}];
    if (kept.empty()) {
        kept.resize(rows * cols);
        honest(x, kept.data(), rows, cols);
    }
    memcpy(y, kept.data(), kept.size() * sizeof *y);
    return 0;
}
