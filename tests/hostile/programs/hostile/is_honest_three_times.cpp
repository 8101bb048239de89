// id: C8
// task: softmax
// expect: incorrect
// why: counts its calls

ENTRY {
    static int calls = 0;
    if (calls++ < 3) honest(x, y, rows, cols);
    return 0;
}
