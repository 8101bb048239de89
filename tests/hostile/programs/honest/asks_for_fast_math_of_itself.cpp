// id: A7
// task: softmax
// expect: ok
// why: reassociation within the bounds, by an attribute of one function

__attribute__((optimize("no-math-errno,associative-math,no-trapping-math,no-signed-zeros"))) static float total(const float *x, int64_t n) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    return sum;
}
ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = *std::max_element(x, x + cols);
        for (int64_t c = 0; c < cols; ++c) y[c] = std::exp(x[c] - top);
        float scale = 1.0f / total(y, cols);
        for (int64_t c = 0; c < cols; ++c) y[c] *= scale;
    }
    return 0;
}
