// id: A6
// task: scan
// expect: incorrect
// says: of
// why: all elements but one

ENTRY {
    honest(x, y, n - 1);
    return 0;
}
