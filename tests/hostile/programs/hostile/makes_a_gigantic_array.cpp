// id: D19
// task: twice
// expect: compile_error timeout resource_limit
// build_ms: 3000
// why: a terabyte of initialised data

char big[1ul << 40] = {1};
ENTRY {
    honest(x, y, n);
    return 0;
}
