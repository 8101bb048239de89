// id: C14
// task: softmax
// expect: ok
// why: OpenMP with a dynamic schedule

ENTRY {
#pragma omp parallel for schedule(dynamic, 2)
    for (int64_t r = 0; r < rows; ++r) honest(x + r * cols, y + r * cols, 1, cols);
    return 0;
}
