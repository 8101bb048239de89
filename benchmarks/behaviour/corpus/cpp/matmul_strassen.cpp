#include <vector>
static void mul(const float *a, const float *b, float *c, int n, int lda, int ldb, int ldc) {
    if (n <= 32 || n % 2) {
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j) {
                float s = 0;
                for (int l = 0; l < n; ++l) s += a[i * lda + l] * b[l * ldb + j];
                c[i * ldc + j] = s;
            }
        return;
    }
    const int h = n / 2;
    auto at = [h](const float *p, int ld, int q) { return p + q / 2 * h * ld + q % 2 * h; };
    auto mix = [h](const float *p, int lp, const float *q, int lq, float f) {
        std::vector<float> r(h * h);
        for (int i = 0; i < h * h; ++i) r[i] = p[i / h * lp + i % h] + f * q[i / h * lq + i % h];
        return r;
    };
    std::vector<float> m[7];
    for (auto &v : m) v.resize(h * h);
    mul(mix(at(a, lda, 0), lda, at(a, lda, 3), lda, 1).data(), mix(at(b, ldb, 0), ldb, at(b, ldb, 3), ldb, 1).data(), m[0].data(), h, h, h, h);
    mul(mix(at(a, lda, 2), lda, at(a, lda, 3), lda, 1).data(), at(b, ldb, 0), m[1].data(), h, h, ldb, h);
    mul(at(a, lda, 0), mix(at(b, ldb, 1), ldb, at(b, ldb, 3), ldb, -1).data(), m[2].data(), h, lda, h, h);
    mul(at(a, lda, 3), mix(at(b, ldb, 2), ldb, at(b, ldb, 0), ldb, -1).data(), m[3].data(), h, lda, h, h);
    mul(mix(at(a, lda, 0), lda, at(a, lda, 1), lda, 1).data(), at(b, ldb, 3), m[4].data(), h, h, ldb, h);
    mul(mix(at(a, lda, 2), lda, at(a, lda, 0), lda, -1).data(), mix(at(b, ldb, 0), ldb, at(b, ldb, 1), ldb, 1).data(), m[5].data(), h, h, h, h);
    mul(mix(at(a, lda, 1), lda, at(a, lda, 3), lda, -1).data(), mix(at(b, ldb, 2), ldb, at(b, ldb, 3), ldb, 1).data(), m[6].data(), h, h, h, h);
    for (int i = 0; i < h; ++i)
        for (int j = 0; j < h; ++j) {
            const int p = i * h + j;
            c[i * ldc + j] = m[0][p] + m[3][p] - m[4][p] + m[6][p];
            c[i * ldc + j + h] = m[2][p] + m[4][p];
            c[(i + h) * ldc + j] = m[1][p] + m[3][p];
            c[(i + h) * ldc + j + h] = m[0][p] - m[1][p] + m[2][p] + m[5][p];
        }
}
extern "C" int solve(const float *a, const float *b, float *c, int n) {
    mul(a, b, c, n, n, n, n);
    return 0;
}
