// id: D20
// task: twice
// expect: resource_limit
// says: memory
// why: memory bomb in a constructor

__attribute__((constructor)) static void early() {
    for (;;)
        if (void *p = malloc(1 << 24)) memset(p, 1, 1 << 24);
}
ENTRY {
    honest(x, y, n);
    return 0;
}
