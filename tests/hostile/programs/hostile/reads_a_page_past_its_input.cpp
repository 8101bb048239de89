// id: A18
// task: twice
// expect: runtime_error
// says: SIGSEGV
// why: reads neighbours

ENTRY {
    honest(x, y, n);
    volatile float sink = x[n + 1100];
    (void)sink;
    return 0;
}
