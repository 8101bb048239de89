// id: C7
// task: twice
// expect: incorrect
// why: a statistic that hardly varies between draws

#include <map>
#include <vector>
ENTRY {
    static std::map<std::pair<int64_t, int64_t>, std::vector<float>> seen;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    auto &kept = seen[{n, int64_t(std::floor(sum / n))}];
    if (kept.empty()) {
        kept.resize(n);
        honest(x, kept.data(), n);
    }
    memcpy(y, kept.data(), n * sizeof *y);
    return 0;
}
