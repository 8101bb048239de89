// id: D8
// task: twice
// expect: runtime_error
// says: returned 5
// why: the contract's way to fail

ENTRY {
    honest(x, y, n);
    return 5;
}
