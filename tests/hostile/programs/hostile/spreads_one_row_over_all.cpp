// id: A11
// task: softmax
// expect: incorrect
// why: a view with stride zero, by hand

ENTRY {
    honest(x, y, 1, cols);
    for (int64_t r = 1; r < rows; ++r) memcpy(y + r * cols, y, cols * sizeof *y);
    return 0;
}
