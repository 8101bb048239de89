// id: A16
// task: linear
// expect: ok
// why: OpenMP with two levels of loops joined, no race

ENTRY {
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t l = 0; l < k; ++l) sum += x[i * k + l] * w[l * n + j];
            y[i * n + j] = std::max(sum + bias[j], 0.0f);
        }
    return 0;
}
