#include <cmath>
#include <complex>
#include <utility>
extern "C" int fft(std::complex<float> *x, int n) {
    for (int i = 1, j = 0; i < n; ++i) {
        int bit = n >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) std::swap(x[i], x[j]);
    }
    for (int len = 2; len <= n; len <<= 1) {
        const float angle = -2.0f * 3.14159265f / static_cast<float>(len);
        const std::complex<float> root(std::cos(angle), std::sin(angle));
        for (int i = 0; i < n; i += len) {
            std::complex<float> w(1.0f);
            for (int j = 0; j < len / 2; ++j, w *= root) {
                const auto u = x[i + j], v = x[i + j + len / 2] * w;
                x[i + j] = u + v;
                x[i + j + len / 2] = u - v;
            }
        }
    }
    return 0;
}
