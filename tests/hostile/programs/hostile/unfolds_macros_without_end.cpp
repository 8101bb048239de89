// id: D19
// task: twice
// expect: compile_error timeout resource_limit
// build_ms: 2000
// why: the preprocessor's billion laughs

#define A(x) x x x x x x x x x x
#define B(x) A(A(x))
#define C(x) B(B(x))
#define D(x) C(C(x))
ENTRY {
    honest(x, y, n);
    D(D(;))
    return 0;
}
