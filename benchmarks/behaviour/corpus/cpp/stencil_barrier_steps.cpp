#include <utility>
extern "C" int heat(float *u, float *v, int n, int steps) {
#pragma omp parallel
    {
        float *from = u, *to = v;
        for (int s = 0; s < steps; ++s) {
#pragma omp for schedule(static) nowait
            for (int i = 1; i < n - 1; ++i) to[i] = from[i] + 0.1f * (from[i - 1] - 2 * from[i] + from[i + 1]);
#pragma omp barrier
            std::swap(from, to);
        }
    }
    return 0;
}
