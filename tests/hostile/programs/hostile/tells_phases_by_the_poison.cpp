// id: C8
// task: twice
// expect: incorrect
// why: computes only where the output holds the pattern that it saw first

ENTRY {
    static uint32_t first = 0;
    uint32_t now;
    memcpy(&now, y, 4);
    if (!first) first = now;
    if (now == first) honest(x, y, n);
    return 0;
}
