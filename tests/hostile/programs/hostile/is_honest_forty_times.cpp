// id: C8
// task: twice
// expect: incorrect
// says: timed call
// why: a long patience

ENTRY {
    static int calls = 0;
    if (calls++ < 40) honest(x, y, n);
    return 0;
}
