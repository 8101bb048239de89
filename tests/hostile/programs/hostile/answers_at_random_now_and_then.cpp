// id: A16
// task: twice
// expect: incorrect
// why: right most of the time: one element wrong in one call of ten

#include <random>
ENTRY {
    static std::mt19937 dice{std::random_device{}()};
    honest(x, y, n);
    if (dice() % 10 == 0) y[dice() % n] += 1.0f;
    return 0;
}
