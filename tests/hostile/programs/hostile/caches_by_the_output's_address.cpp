// id: C6
// task: twice
// expect: incorrect
// says: never written
// why: leaves an output alone that it has filled before

#include <set>
ENTRY {
    static std::set<std::pair<float *, int64_t>> seen;
    if (seen.insert({y, n}).second) honest(x, y, n);
    return 0;
}
