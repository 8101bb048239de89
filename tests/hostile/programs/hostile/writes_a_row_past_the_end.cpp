// id: A18
// task: softmax
// expect: runtime_error
// says: SIGSEGV
// why: one row too many, of zeros

ENTRY {
    honest(x, y, rows, cols);
    memset(y + rows * cols, 0, (cols + 2048) * sizeof *y);
    return 0;
}
