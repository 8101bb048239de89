// id: D8
// task: twice
// expect: load_error
// says: extern "C" int solve(const float *x, float *y, int64_t n)
// why: a library without the function

extern "C" int solved(const float *x, float *y, int64_t n) {
    honest(x, y, n);
    return 0;
}
