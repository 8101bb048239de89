#include <cstdint>
#include <numeric>
#include <vector>
extern "C" double total(const double *x, int64_t n) {
    const int64_t chunk = 1 << 16, chunks = (n + chunk - 1) / chunk;
    std::vector<double> partial(chunks, 0.0);
#pragma omp parallel for
    for (int64_t p = 0; p < chunks; ++p) {
        double s = 0.0;
        for (int64_t i = p * chunk; i < n && i < (p + 1) * chunk; ++i) s += x[i];
        partial[p] = s;
    }
    return std::accumulate(partial.begin(), partial.end(), 0.0);
}
