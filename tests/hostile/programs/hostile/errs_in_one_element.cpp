// id: A20
// task: softmax
// expect: incorrect
// says: bound
// why: small in the norm of the whole

ENTRY {
    honest(x, y, rows, cols);
    y[rows * cols / 3] += 0.5f / float(rows * cols) + 4e-4f;
    return 0;
}
