#include <cstdint>
#include <vector>
extern "C" int conv(const float *x, const float *w, float *y, int64_t c, int64_t h, int64_t wd, int64_t co) {
    const int64_t oh = h - 2, ow = wd - 2, kk = c * 9;
    std::vector<float> patches(kk * ow);
    for (int64_t i = 0; i < oh; ++i) {
        for (int64_t q = 0; q < kk; ++q)
            for (int64_t j = 0; j < ow; ++j) patches[q * ow + j] = x[(q / 9 * h + i + q % 9 / 3) * wd + j + q % 3];
        for (int64_t o = 0; o < co; ++o)
            for (int64_t j = 0; j < ow; ++j) {
                float acc = 0.0f;
                for (int64_t q = 0; q < kk; ++q) acc += w[o * kk + q] * patches[q * ow + j];
                y[(o * oh + i) * ow + j] = acc;
            }
    }
    return 0;
}
