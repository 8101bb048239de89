// id: C17
// task: softmax
// expect: incorrect compile_error runtime_error
// why: the problem shrunk by a macro

#define rows (rows / 2 + rows % 2)
ENTRY {
    honest(x, y, rows, cols);
    return 0;
}
