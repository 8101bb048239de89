// id: D12
// task: scan
// expect: ok
// why: recursion that ends

static int64_t add(const int32_t *x, int64_t *y, int64_t n, int64_t before) {
    if (n <= 32) {
        for (int64_t i = 0; i < n; ++i) y[i] = before += x[i];
        return before;
    }
    return add(x + n / 2, y + n / 2, n - n / 2, add(x, y, n / 2, before));
}
ENTRY {
    add(x, y, n, 0);
    return 0;
}
