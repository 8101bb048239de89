// id: A13
// task: softmax
// expect: incorrect
// why: comparisons with NaN are false

ENTRY {
    std::fill(y, y + rows * cols, __builtin_nanf(""));
    return 0;
}
