// id: A6
// task: softmax
// expect: incorrect
// why: partial work

ENTRY {
    honest(x, y, rows - 1 > 0 ? rows - 1 : 1, cols);
    return 0;
}
