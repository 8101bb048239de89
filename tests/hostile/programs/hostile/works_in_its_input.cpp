// id: A14
// task: softmax
// expect: runtime_error
// says: SIGSEGV
// why: in place

ENTRY {
    float *z = const_cast<float *>(x);
    honest(x, z, rows, cols);
    memcpy(y, z, rows * cols * sizeof *y);
    return 0;
}
