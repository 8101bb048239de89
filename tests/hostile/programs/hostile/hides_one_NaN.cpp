// id: A13
// task: twice
// expect: incorrect
// says: finite
// why: one element in fifty thousand

ENTRY {
    honest(x, y, n);
    y[n / 2] = __builtin_nanf("0x1234");
    return 0;
}
