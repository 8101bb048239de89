// id: A10
// task: softmax
// expect: incorrect
// why: treats all rows as if their greatest value came once

ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = *std::max_element(x, x + cols), sum = 0;
        bool first = true;
        for (int64_t c = 0; c < cols; ++c) {
            y[c] = x[c] == top ? (first ? 1.0f : 0.0f) : std::exp(x[c] - top);
            if (x[c] == top) first = false;
            sum += y[c];
        }
        for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
    }
    return 0;
}
