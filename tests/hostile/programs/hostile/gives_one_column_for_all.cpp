// id: A12
// task: linear
// expect: incorrect
// why: shape (m, 1) that would broadcast to (m, n)

ENTRY {
    for (int64_t i = 0; i < m; ++i) {
        float sum = bias[0];
        for (int64_t l = 0; l < k; ++l) sum += x[i * k + l] * w[l * n];
        y[i] = std::max(sum, 0.0f);
    }
    return 0;
}
