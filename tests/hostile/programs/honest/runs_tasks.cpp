// id: C2
// task: softmax
// expect: ok
// why: OpenMP tasks and a wait for them

ENTRY {
#pragma omp parallel
#pragma omp single
    {
        for (int64_t r = 0; r < rows; r += 4)
#pragma omp task firstprivate(r)
            honest(x + r * cols, y + r * cols, std::min<int64_t>(4, rows - r), cols);
#pragma omp taskwait
    }
    return 0;
}
