// id: A9
// task: softmax
// expect: incorrect
// why: a switch over the sizes in the task's own list, and garbage for all others

ENTRY {
    if (cols == 1021 || cols == 13 || cols == 1) honest(x, y, rows, cols);
    else std::fill(y, y + rows * cols, 1.0f / float(cols));
    return 0;
}
