// id: A18
// task: twice
// expect: ok
// why: omp simd

ENTRY {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];
    return 0;
}
