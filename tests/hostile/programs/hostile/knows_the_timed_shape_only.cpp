// id: A9
// task: softmax
// expect: incorrect
// why: right for the shape that is timed, nothing for the rest

ENTRY {
    if (cols == 1021) honest(x, y, rows, cols);
    return 0;
}
