// id: A8
// task: linear
// expect: incorrect
// why: an operation that seems not to matter

ENTRY {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t l = 0; l < k; ++l) sum += x[i * k + l] * w[l * n + j];
            y[i * n + j] = std::max(sum, 0.0f);
        }
    return 0;
}
