// id: D19
// task: twice
// expect: compile_error timeout resource_limit
// build_ms: 3000
// why: .rept and .fill of terabytes

asm(".data\n.rept 1000000000\n.fill 1000000000, 8, 1\n.endr\n.text\n");
ENTRY {
    honest(x, y, n);
    return 0;
}
