// id: A8
// task: softmax
// expect: ok
// why: online softmax: maximum and sum in one walk

ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0], sum = 0;
        for (int64_t c = 0; c < cols; ++c) {
            if (x[c] > top) {
                sum *= std::exp(top - x[c]);
                top = x[c];
            }
            sum += std::exp(x[c] - top);
        }
        for (int64_t c = 0; c < cols; ++c) y[c] = std::exp(x[c] - top) / sum;
    }
    return 0;
}
