// id: D19
// task: twice
// expect: compile_error timeout resource_limit
// build_ms: 3000
// why: recursion of headers

#include __FILE__
ENTRY {
    honest(x, y, n);
    return 0;
}
