// id: D19
// task: twice
// expect: compile_error timeout
// build_ms: 4000
// why: diagnostics without end

#define A(x) x x x x x x x x x x
#define B(x) A(A(x))
B(B(B(a b;)))
ENTRY {
    honest(x, y, n);
    return 0;
}
