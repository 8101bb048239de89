extern "C" void box(const float *x, float *y, int n, int r) {
    double run = 0.0;
    for (int i = 0; i < r && i < n; ++i) run += x[i];
    for (int i = 0; i < n; ++i) {
        if (i + r < n) run += x[i + r];
        if (i - r - 1 >= 0) run -= x[i - r - 1];
        y[i] = static_cast<float>(run / (2 * r + 1));
    }
}
