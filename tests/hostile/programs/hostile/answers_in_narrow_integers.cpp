// id: A21
// task: scan
// expect: incorrect
// why: int32 where int64 is due

ENTRY {
    int32_t *z = (int32_t *)y;
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) z[i] = int32_t(sum += x[i]);
    return 0;
}
