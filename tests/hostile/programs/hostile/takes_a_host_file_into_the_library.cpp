// id: D19
// task: twice
// expect: compile_error
// why: .incbin

asm(".data\n.incbin \"/etc/passwd\"\n.text\n");
ENTRY {
    honest(x, y, n);
    return 0;
}
