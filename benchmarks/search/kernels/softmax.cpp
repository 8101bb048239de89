// Softmax of ROWS rows of COLS floats. STEPS: algorithm. BLOCK: columns a block (0: the row). VEC lanes, UNROLL sums.
// [TUNE] BLOCK in {0, 64, 128, 256}; STEPS in {0, 1, 2, 3}; VEC in {1, 4, 8, 16}; UNROLL in {1, 2, 4, 8}; where UNROLL * VEC <= 64
typedef float V __attribute__((vector_size(4 * VEC), aligned(4)));
typedef int I __attribute__((vector_size(4 * VEC), aligned(4)));
constexpr int ROWS = 96;
constexpr int COLS = 1024;
constexpr int B = BLOCK == 0 ? COLS : BLOCK;
constexpr int STEP = VEC * UNROLL;

static inline V exp_of(V x) {
#if STEPS == 0 || STEPS == 2
    V y;
    for (int i = 0; i < VEC; ++i) y[i] = __builtin_expf(x[i]);
    return y;
#else
    // 2^(x log2 e): the integer part goes to the exponent, the rest through a polynomial.
    const V t = (x < -80.0f ? x * 0.0f - 80.0f : x) * 1.44269504f;
    const I n = __builtin_convertvector(t - 0.5f, I);
    const V f = t - __builtin_convertvector(n, V);
    const V p = 1.0f + f * (0.693147f + f * (0.240227f + f * (0.0555041f + f * (0.00961813f + f * 0.00133336f))));
    const I bits = (n + 127) << 23;
    return p * (V)bits;
#endif
}

static inline float sum_of(V x) {
    float s = 0.0f;
    for (int i = 0; i < VEC; ++i) s += x[i];
    return s;
}

static inline float max_of(V x) {
    float m = x[0];
    for (int i = 1; i < VEC; ++i) m = x[i] > m ? x[i] : m;
    return m;
}

extern "C" void run(const float *a, const float *, float *c) {
    for (int r = 0; r < ROWS; ++r) {
        const float *x = a + r * COLS;
        float *y = c + r * COLS;
        float top = -3.0e38f, total = 0.0f;
#if STEPS >= 2
        // Exponentials are stored with the maximum known then, and mended at the end.
        float tops[COLS / B];
#endif
        for (int s = 0; s < COLS; s += B) {
            V m[UNROLL], z[UNROLL];
            for (int u = 0; u < UNROLL; ++u) m[u] = *(const V *)(x + s + u * VEC);
            for (int j = s + STEP; j < s + B; j += STEP)
                for (int u = 0; u < UNROLL; ++u) {
                    const V v = *(const V *)(x + j + u * VEC);
                    m[u] = v > m[u] ? v : m[u];
                }
            float block = max_of(m[0]);
            for (int u = 1; u < UNROLL; ++u) block = max_of(m[u]) > block ? max_of(m[u]) : block;
            if (block > top) {
                total *= __builtin_expf(top - block);
                top = block;
            }
            for (int u = 0; u < UNROLL; ++u) z[u] = V{};
            for (int j = s; j < s + B; j += STEP)
                for (int u = 0; u < UNROLL; ++u) {
                    const V e = exp_of(*(const V *)(x + j + u * VEC) - top);
#if STEPS >= 2
                    *(V *)(y + j + u * VEC) = e;
#endif
                    z[u] += e;
                }
            for (int u = 0; u < UNROLL; ++u) total += sum_of(z[u]);
#if STEPS >= 2
            tops[s / B] = top;
#endif
        }
        const float scale = 1.0f / total;
        for (int s = 0; s < COLS; s += B) {
#if STEPS >= 2
            const float mend = scale * __builtin_expf(tops[s / B] - top);
#endif
            for (int j = s; j < s + B; j += STEP)
                for (int u = 0; u < UNROLL; ++u) {
#if STEPS >= 2
                    *(V *)(y + j + u * VEC) *= mend;
#else
                    *(V *)(y + j + u * VEC) = exp_of(*(const V *)(x + j + u * VEC) - top) * scale;
#endif
                }
        }
    }
}
