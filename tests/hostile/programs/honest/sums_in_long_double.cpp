// id: A20
// task: softmax
// expect: ok
// why: better than it must be

ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        long double top = *std::max_element(x, x + cols), sum = 0;
        for (int64_t c = 0; c < cols; ++c) sum += std::exp((long double)x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] = float(std::exp((long double)x[c] - top) / sum);
    }
    return 0;
}
