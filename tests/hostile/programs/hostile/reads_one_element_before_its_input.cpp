// id: A18
// task: twice
// expect: runtime_error
// says: SIGSEGV
// why: buffers that start at a page that nobody may touch take turns with those that end at one

ENTRY {
    honest(x, y, n);
    volatile float sink = x[-1];
    (void)sink;
    return 0;
}
