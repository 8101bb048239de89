// id: A7
// task: scan
// expect: incorrect
// says: values differ
// why: integers must be exact

ENTRY {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) y[i] = int64_t(sum += float(x[i]));
    return 0;
}
