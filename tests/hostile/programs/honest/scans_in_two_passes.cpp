// id: A16
// task: scan
// expect: ok
// why: block sums, then offsets, in parallel: exact whatever the order

#include <vector>
ENTRY {
    const int64_t size = 4096, blocks = (n + size - 1) / size;
    std::vector<int64_t> sums(blocks + 1, 0);
#pragma omp parallel for
    for (int64_t b = 0; b < blocks; ++b)
        for (int64_t i = b * size; i < std::min(n, (b + 1) * size); ++i) sums[b + 1] += x[i];
    for (int64_t b = 0; b < blocks; ++b) sums[b + 1] += sums[b];
#pragma omp parallel for
    for (int64_t b = 0; b < blocks; ++b) {
        int64_t sum = sums[b];
        for (int64_t i = b * size; i < std::min(n, (b + 1) * size); ++i) y[i] = sum += x[i];
    }
    return 0;
}
