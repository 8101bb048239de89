// id: A8
// task: softmax
// expect: incorrect
// why: clamps the exponent as if rows never lay far apart

ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float sum = 0;
        for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(std::min(x[c], 20.0f));
        for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
    }
    return 0;
}
