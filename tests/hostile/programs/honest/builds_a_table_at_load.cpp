// id: C20
// task: softmax
// expect: ok
// why: a constructor that fills a table of powers, used for an exact exponential

static double powers[2200];
__attribute__((constructor)) static void early() {
    for (int i = 0; i < 2200; ++i) powers[i] = std::ldexp(1.0, i - 1100);
}
static float power(float v) {
    double t = double(v) * 1.4426950408889634, whole = std::floor(t);
    if (whole < -1000) return 0.0f;
    return float(powers[int(whole) + 1100] * std::exp2(t - whole));
}
ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = *std::max_element(x, x + cols);
        double sum = 0;
        for (int64_t c = 0; c < cols; ++c) sum += y[c] = power(x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] = float(y[c] / sum);
    }
    return 0;
}
