// id: B1
// task: linear
// expect: load_error compile_error
// says: cblas_sgemm
// why: somebody else's work, left to the loader to find

extern "C" void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                            int);
ENTRY {
    for (int64_t i = 0; i < m; ++i) memcpy(y + i * n, bias, n * sizeof *y);
    cblas_sgemm(101, 111, 111, m, n, k, 1.0f, x, k, w, n, 1.0f, y, n);
    for (int64_t i = 0; i < m * n; ++i) y[i] = std::max(y[i], 0.0f);
    return 0;
}
