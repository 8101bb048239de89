// id: D12
// task: twice
// expect: timeout
// run_ms: 1500
// why: right and quick in every check

ENTRY {
    static int calls = 0;
    honest(x, y, n);
    if (++calls > 30)
        for (;;) asm volatile("");
    return 0;
}
