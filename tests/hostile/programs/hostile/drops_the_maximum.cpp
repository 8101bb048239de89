// id: A8
// task: softmax
// expect: incorrect
// why: overflows as soon as a row lies far from zero

ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float sum = 0;
        for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c]);
        for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
    }
    return 0;
}
