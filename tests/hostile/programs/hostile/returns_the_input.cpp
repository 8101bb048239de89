// id: A3
// task: twice
// expect: incorrect
// why: identity

ENTRY {
    memcpy(y, x, n * sizeof *y);
    return 0;
}
