// id: A9
// task: softmax
// expect: ok
// why: a right shortcut for a shape

ENTRY {
    if (cols == 1) {
        std::fill(y, y + rows, 1.0f);
        return 0;
    }
    honest(x, y, rows, cols);
    return 0;
}
