// id: D19
// task: twice
// expect: timeout resource_limit
// build_ms: 2000
// why: shallow, and two to the twenty-fourth instances

template <int N, int M> struct T {
    static const long v = T<N - 1, 2 * M>::v + T<N - 1, 2 * M + 1>::v;
};
template <int M> struct T<0, M> {
    static const long v = M;
};
long z = T<24, 0>::v;
ENTRY {
    honest(x, y, n);
    return 0;
}
