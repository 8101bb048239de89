// id: A18
// task: twice
// expect: incorrect runtime_error
// why: into the rest of the page or the guard before it

ENTRY {
    honest(x, y, n);
    y[-1] = 1.0f;
    return 0;
}
