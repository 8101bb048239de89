// id: A13
// task: twice
// expect: incorrect
// why: errors whose squares overflow a float32 norm

ENTRY {
    honest(x, y, n);
    y[n - 1] = -3.0e38f;
    return 0;
}
