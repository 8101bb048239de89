#include <pthread.h>
#include <thread>
#include <vector>
extern "C" int normalise(float *x, float *tops, int n) {
    constexpr int T = 4;
    pthread_barrier_t meet;
    pthread_barrier_init(&meet, nullptr, T);
    std::vector<std::thread> team;
    for (int t = 0; t < T; ++t)
        team.emplace_back([=, &meet] {
            const int lo = n / T * t, hi = t == T - 1 ? n : n / T * (t + 1);
            for (int i = lo; i < hi; ++i) tops[i] = x[n - 1 - i] * 0.5f;
            pthread_barrier_wait(&meet);
            for (int i = lo; i < hi; ++i) x[i] += tops[n - 1 - i];
        });
    for (auto &m : team) m.join();
    pthread_barrier_destroy(&meet);
    return 0;
}
