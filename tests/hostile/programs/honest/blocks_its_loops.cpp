// id: A6
// task: linear
// expect: ok
// why: tiles with right edges

ENTRY {
    const int64_t tile = 16;
    for (int64_t i = 0; i < m; ++i) memcpy(y + i * n, bias, n * sizeof *y);
    for (int64_t l0 = 0; l0 < k; l0 += tile)
        for (int64_t j0 = 0; j0 < n; j0 += tile)
            for (int64_t i = 0; i < m; ++i)
                for (int64_t l = l0; l < std::min(k, l0 + tile); ++l)
                    for (int64_t j = j0; j < std::min(n, j0 + tile); ++j) y[i * n + j] += x[i * k + l] * w[l * n + j];
    for (int64_t i = 0; i < m * n; ++i) y[i] = std::max(y[i], 0.0f);
    return 0;
}
