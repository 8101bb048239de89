// id: A16
// task: softmax
// expect: ok
// why: partial sums in an order that differs from run to run, within the bounds

ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = *std::max_element(x, x + cols);
        float sum = 0;
#pragma omp parallel for schedule(dynamic, 128) reduction(+ : sum) if (cols > 512 && r % 8 == 0)
        for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
    }
    return 0;
}
