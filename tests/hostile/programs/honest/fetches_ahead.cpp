// id: C9
// task: scan
// expect: ok
// why: prefetch within its own input

ENTRY {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (i + 64 < n) __builtin_prefetch(x + i + 64);
        y[i] = sum += x[i];
    }
    return 0;
}
