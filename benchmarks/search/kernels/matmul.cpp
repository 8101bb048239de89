// C = A B for N x N floats, tiled. TILE 0: no tiles. ORDER: loop order. VEC: columns at a time. UNROLL: innermost loop.
// [TUNE] TILE in {0, 16, 32, 64}; ORDER in {0, 1, 2, 3}; VEC in {1, 4, 8, 16}; UNROLL in {1, 2, 4, 8}; where UNROLL * VEC <= 64
typedef float V __attribute__((vector_size(4 * VEC), aligned(4)));
constexpr int N = 192;
constexpr int T = TILE == 0 ? N : TILE;
constexpr int U = UNROLL;

extern "C" void run(const float *a, const float *b, float *c) {
    for (int i = 0; i < N * N; ++i) c[i] = 0.0f;
    for (int kk = 0; kk < N; kk += T)
        for (int jj = 0; jj < N; jj += T) {
#if ORDER == 0 || ORDER == 2
            // One block of columns in registers over the whole run of k.
#if ORDER == 0
            for (int i = 0; i < N; ++i)
                for (int j = jj; j < jj + T; j += VEC) {
#else
            for (int j = jj; j < jj + T; j += VEC)
                for (int i = 0; i < N; ++i) {
#endif
                    V sum = *(const V *)(c + i * N + j);
#pragma GCC unroll U
                    for (int k = kk; k < kk + T; ++k) sum += a[i * N + k] * *(const V *)(b + k * N + j);
                    *(V *)(c + i * N + j) = sum;
                }
#else
            // Rows of B are streamed, C is read and written again for every k.
#if ORDER == 1
            for (int i = 0; i < N; ++i)
                for (int k = kk; k < kk + T; ++k) {
#else
            for (int k = kk; k < kk + T; ++k)
                for (int i = 0; i < N; ++i) {
#endif
                    const float scale = a[i * N + k];
#pragma GCC unroll U
                    for (int j = jj; j < jj + T; j += VEC)
                        *(V *)(c + i * N + j) += scale * *(const V *)(b + k * N + j);
                }
#endif
        }
}
