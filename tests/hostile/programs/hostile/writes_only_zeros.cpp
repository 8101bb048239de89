// id: A1
// task: softmax
// expect: incorrect
// says: relative L2
// why: softmax of many columns is near zero everywhere

ENTRY {
    memset(y, 0, rows * cols * sizeof *y);
    return 0;
}
