// A weighted 3 x 3 stencil of an N x N grid. TILE: columns a tile (0: the row). ROWS: rows at a time. THREADS share rows.
// [TUNE] TILE in {0, 32, 64, 128}; ROWS in {0, 1, 2, 4}; VEC in {1, 4, 8, 16}; UNROLL in {1, 2, 4}; THREADS in {1, 2}
// [TUNE] where ROWS * VEC * UNROLL <= 128
#include <pthread.h>
typedef float V __attribute__((vector_size(4 * VEC), aligned(4)));
constexpr int N = 514;
constexpr int M = N - 2;
constexpr int T = TILE == 0 ? M : TILE;
constexpr int U = UNROLL;

static inline void cell(const float *a, const float *w, float *c, int i, int j) {
    V sum = V{};
    for (int di = 0; di < 3; ++di)
        for (int dj = 0; dj < 3; ++dj) sum += w[di * 3 + dj] * *(const V *)(a + (i + di) * N + j + dj);
    *(V *)(c + (i + 1) * N + j + 1) = sum;
}

static void part(const float *a, const float *w, float *c, int from, int to) {
    for (int jj = 0; jj < M; jj += T)
#if ROWS == 0
        // Column by column: the wrong way round.
        for (int j = jj; j < jj + T; j += VEC)
            for (int i = from; i < to; ++i) cell(a, w, c, i, j);
#else
        for (int i = from; i < to; i += ROWS)
#pragma GCC unroll U
            for (int j = jj; j < jj + T; j += VEC)
                for (int r = 0; r < ROWS; ++r) cell(a, w, c, i + r, j);
#endif
}

struct Share {
    const float *a, *w;
    float *c;
};

static void *second(void *argument) {
    const Share *s = static_cast<Share *>(argument);
    part(s->a, s->w, s->c, M / 2, M);
    return nullptr;
}

extern "C" void run(const float *a, const float *w, float *c) {
#if THREADS == 2
    Share share{a, w, c};
    pthread_t helper;
    if (pthread_create(&helper, nullptr, second, &share) == 0) {
        part(a, w, c, 0, M / 2);
        pthread_join(helper, nullptr);
        return;
    }
#endif
    part(a, w, c, 0, M);
}
