// id: C21
// task: twice
// expect: incorrect
// says: never written
// why: deferred to the end of the process

static struct Late {
    const float *x = nullptr;
    float *y = nullptr;
    int64_t n = 0;
    ~Late() {
        if (y) honest(x, y, n);
    }
} late;
ENTRY {
    late.x = x, late.y = y, late.n = n;
    return 0;
}
