// id: D12
// task: twice
// expect: timeout
// says: loading
// run_ms: 1000
// why: endless constructor

__attribute__((constructor)) static void early() {
    for (;;) asm volatile("");
}
ENTRY { return 0; }
