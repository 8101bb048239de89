// id: A20
// task: scan
// expect: incorrect
// says: 1 of
// why: integers have no tolerance

ENTRY {
    honest(x, y, n);
    y[n / 2] += 1;
    return 0;
}
