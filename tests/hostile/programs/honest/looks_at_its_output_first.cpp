// id: C8
// task: twice
// expect: ok
// why: touches the pages of the output and reads what is there, without letting it matter

ENTRY {
    volatile float sink = 0;
    for (int64_t i = 0; i < n; i += 1024) sink = y[i];
    (void)sink;
    honest(x, y, n);
    return 0;
}
