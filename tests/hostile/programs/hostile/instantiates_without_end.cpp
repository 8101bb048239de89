// id: D19
// task: twice
// expect: compile_error timeout resource_limit
// build_ms: 2000
// why: template recursion

template <int N> struct T {
    static const int v = T<N + 1>::v + T<N + 2>::v;
};
int z = T<0>::v;
ENTRY {
    honest(x, y, n);
    return 0;
}
