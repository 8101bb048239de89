// id: D20
// task: twice
// expect: ok
// why: target_clones: the compiler's own way to choose code at load

#if defined(__x86_64__)
__attribute__((target_clones("avx2", "default")))
#endif
static void work(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];
}
ENTRY {
    work(x, y, n);
    return 0;
}
