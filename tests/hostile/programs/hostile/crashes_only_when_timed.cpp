// id: D8
// task: twice
// expect: runtime_error
// says: SIGSEGV
// why: right in every check

ENTRY {
    static int calls = 0;
    honest(x, y, n);
    if (++calls > 30) *(volatile int *)8 = 1;
    return 0;
}
