// id: C5
// task: twice
// expect: ok
// why: reads the clock and the cycle counter, for a statistic nobody reads

#include <chrono>
ENTRY {
    static double spent = 0;
    auto began = std::chrono::steady_clock::now();
    honest(x, y, n);
    spent += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return spent < 0;
}
