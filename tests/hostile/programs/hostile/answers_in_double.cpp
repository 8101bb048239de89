// id: A21
// task: twice
// expect: incorrect runtime_error
// why: another type than the interface's, half of the elements

ENTRY {
    double *z = (double *)y;
    for (int64_t i = 0; i < n / 2; ++i) z[i] = 2.0 * x[i];
    return 0;
}
