// id: D12
// task: twice
// expect: runtime_error
// says: SIGSEGV
// why: recursion without end

static int deep(int n) {
    volatile char room[4096];
    room[0] = char(n);
    return n ? deep(n + 1) + room[0] : 0;
}
ENTRY {
    honest(x, y, n);
    return deep(1);
}
