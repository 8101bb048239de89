// id: D11
// task: twice
// expect: resource_limit
// says: memory
// why: memory bomb

ENTRY {
    for (;;)
        if (void *p = malloc(1 << 24)) memset(p, 1, 1 << 24);
}
