// id: A6
// task: softmax
// expect: incorrect
// why: half of the work, every row written

ENTRY {
    for (int64_t r = 0; r < rows; ++r) {
        if (r % 2 == 0) honest(x + r * cols, y + r * cols, 1, cols);
        else memcpy(y + r * cols, y + (r - 1) * cols, cols * sizeof *y);
    }
    return 0;
}
