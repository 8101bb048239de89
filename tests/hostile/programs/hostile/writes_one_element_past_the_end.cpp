// id: A18
// task: twice
// expect: incorrect runtime_error
// why: into the rest of the page or the guard behind it

ENTRY {
    honest(x, y, n);
    y[n] = 1.0f;
    return 0;
}
