// id: D12
// task: twice
// expect: timeout
// says: running
// run_ms: 1000
// why: endless loop

ENTRY {
    for (;;) asm volatile("");
}
