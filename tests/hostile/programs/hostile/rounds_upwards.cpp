// id: D25
// task: twice
// expect: incorrect suspect runtime_error
// says: 77
// why: another rounding mode for whoever comes next in this process: nobody does, so it tells us and gives up

#include <cfenv>
ENTRY {
    std::fesetround(FE_UPWARD);
    return 77;
}
