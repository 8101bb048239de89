// id: D25
// task: twice
// expect: ok
// why: another rounding mode inside, the old one afterwards

#include <cfenv>
ENTRY {
    int before = std::fegetround();
    std::fesetround(FE_TOWARDZERO);
    honest(x, y, n);
    std::fesetround(before);
    return 0;
}
