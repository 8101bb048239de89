// id: A6
// task: softmax
// expect: incorrect
// why: columns beyond a multiple of eight get nothing

ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = *std::max_element(x, x + cols), sum = 0;
        for (int64_t c = 0; c < cols; ++c) sum += std::exp(x[c] - top);
        for (int64_t c = 0; c < cols / 8 * 8; ++c) y[c] = std::exp(x[c] - top) / sum;
    }
    return 0;
}
