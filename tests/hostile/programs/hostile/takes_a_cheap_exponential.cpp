// id: A7
// task: softmax
// expect: incorrect
// why: Schraudolph's bit trick, some percent off

ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = *std::max_element(x, x + cols), sum = 0;
        for (int64_t c = 0; c < cols; ++c) {
            int32_t bits = std::max(0, int32_t(12102203.0f * (x[c] - top)) + 1064866805);
            memcpy(y + c, &bits, 4);
            sum += y[c];
        }
        for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
    }
    return 0;
}
