extern "C" void conv(const float *x, const float *w, float *y, int ci, int co, int h, int wd) {
    const int oh = h - 2, ow = wd - 2;
    for (int o = 0; o < co; ++o)
        for (int i = 0; i < oh; ++i)
            for (int j = 0; j < ow; ++j) {
                float acc = 0.f;
                for (int c = 0; c < ci; ++c)
                    for (int r = 0; r < 3; ++r)
                        for (int s = 0; s < 3; ++s)
                            acc += x[(c * h + i + r) * wd + j + s] * w[((o * ci + c) * 3 + r) * 3 + s];
                y[(o * oh + i) * ow + j] = acc;
            }
}
