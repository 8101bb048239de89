// id: A2
// task: softmax
// expect: incorrect
// why: 1/cols is the mean of every row

ENTRY {
    std::fill(y, y + rows * cols, 1.0f / float(cols));
    return 0;
}
