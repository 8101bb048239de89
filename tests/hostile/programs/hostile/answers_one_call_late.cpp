// id: C21
// task: twice
// expect: incorrect
// why: each call fills the output of the one before

ENTRY {
    static const float *from;
    static float *to;
    static int64_t count = 0;
    if (to && count == n) honest(from, to, count);
    from = x, to = y, count = n;
    return 0;
}
