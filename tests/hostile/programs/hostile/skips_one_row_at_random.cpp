// id: C19
// task: softmax
// expect: incorrect
// why: three percent of the work, in timed calls only

ENTRY {
    static unsigned dice = 12345;
    honest(x, y, rows, cols);
    dice = dice * 1664525u + 1013904223u;
    if (cols == 1021 && (dice >> 16) % 4 == 0) {
        float *row = y + (dice >> 20) % rows * cols;
        std::fill(row, row + cols, 1.0f / float(cols));
    }
    return 0;
}
