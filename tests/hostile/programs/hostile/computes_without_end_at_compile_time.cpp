// id: D19
// task: twice
// expect: compile_error timeout resource_limit
// build_ms: 2000
// why: constexpr loop

constexpr long f() {
    long s = 0;
    for (long i = 0; i < 1l << 40; ++i) s += i;
    return s;
}
constexpr long z = f();
ENTRY {
    honest(x, y, n);
    return int(z);
}
