// id: E17
// task: twice
// expect: ok
// why: NDEBUG and assert

#define NDEBUG
#include <cassert>
ENTRY {
    assert(n < 0);
    honest(x, y, n);
    return 0;
}
