// id: C20
// task: softmax
// expect: ok
// why: constexpr coefficients of a polynomial

constexpr double factorial(int n) { return n < 2 ? 1.0 : n * factorial(n - 1); }
constexpr double c[] = {1, 1, 1 / factorial(2), 1 / factorial(3), 1 / factorial(4), 1 / factorial(5), 1 / factorial(6),
                        1 / factorial(7), 1 / factorial(8), 1 / factorial(9)};
static double power(double v) {
    if (v < -700) return 0;
    double whole = std::nearbyint(v * 1.4426950408889634), rest = v - whole * 0.6931471805599453, sum = 0;
    for (int i = 9; i >= 0; --i) sum = sum * rest + c[i];
    return std::ldexp(sum, int(whole));
}
ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        double top = *std::max_element(x, x + cols), sum = 0;
        for (int64_t i = 0; i < cols; ++i) sum += power(x[i] - top);
        for (int64_t i = 0; i < cols; ++i) y[i] = float(power(x[i] - top) / sum);
    }
    return 0;
}
