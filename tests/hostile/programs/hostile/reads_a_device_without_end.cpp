// id: D19
// task: twice
// expect: compile_error timeout resource_limit
// build_ms: 2000
// why: /dev/zero as a header

#include "/dev/zero"
ENTRY {
    honest(x, y, n);
    return 0;
}
