// id: C8
// task: softmax
// expect: ok
// why: one code for wide rows, another for narrow ones; both right

template <bool wide> static void row(const float *x, float *y, int64_t cols) {
    float top = *std::max_element(x, x + cols);
    typename std::conditional<wide, double, float>::type sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c] - top);
    for (int64_t c = 0; c < cols; ++c) y[c] = float(y[c] / sum);
}
ENTRY {
    for (int64_t r = 0; r < rows; ++r) cols > 64 ? row<true>(x + r * cols, y + r * cols, cols) : row<false>(x + r * cols, y + r * cols, cols);
    return 0;
}
