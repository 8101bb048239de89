// id: A5
// task: softmax
// expect: ok
// why: scratch that is filled anew in every call

static float room[1 << 17];
ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = *std::max_element(x, x + cols), sum = 0;
        for (int64_t c = 0; c < cols; ++c) sum += room[c] = std::exp(x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] = room[c] / sum;
    }
    return 0;
}
