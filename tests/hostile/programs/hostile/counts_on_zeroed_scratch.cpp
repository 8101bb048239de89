// id: A4
// task: linear
// expect: incorrect
// why: adds to an output that it has not cleared

ENTRY {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
            for (int64_t l = 0; l < k; ++l) y[i * n + j] += x[i * k + l] * w[l * n + j];
    return 0;
}
