extern "C" void conv3(const float *x, const float *g, float *y, int n) {
    const float u0 = g[0], u1 = 0.5f * (g[0] + g[1] + g[2]), u2 = 0.5f * (g[0] - g[1] + g[2]), u3 = g[2];
    for (int i = 0; i + 4 <= n; i += 2) {
        const float *d = x + i;
        const float m1 = (d[0] - d[2]) * u0;
        const float m2 = (d[1] + d[2]) * u1;
        const float m3 = (d[2] - d[1]) * u2;
        const float m4 = (d[1] - d[3]) * u3;
        y[i] = m1 + m2 + m3;
        y[i + 1] = m2 - m3 - m4;
    }
}
