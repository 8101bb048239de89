// id: A8
// task: linear
// expect: incorrect
// why: relu binds in few elements only

ENTRY {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = bias[j];
            for (int64_t l = 0; l < k; ++l) sum += x[i * k + l] * w[l * n + j];
            y[i * n + j] = sum;
        }
    return 0;
}
