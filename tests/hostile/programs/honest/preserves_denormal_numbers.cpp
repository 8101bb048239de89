// id: D25
// task: twice
// expect: ok
// why: adds, and touches no control word

ENTRY {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] + x[i];
    return 0;
}
