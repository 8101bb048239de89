// id: A18
// task: twice
// expect: ok
// why: GCC's vector type through memcpy

typedef float v8 __attribute__((vector_size(32)));
ENTRY {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        v8 a;
        memcpy(&a, x + i, sizeof a);
        a += a;
        memcpy(y + i, &a, sizeof a);
    }
    for (; i < n; ++i) y[i] = x[i] + x[i];
    return 0;
}
