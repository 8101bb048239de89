// id: D3
// task: softmax
// expect: runtime_error
// says: 77
// why: what is right never exists in its process

static bool search(uintptr_t from, uintptr_t to, const float *key, const float *not1, int64_t size) {
    for (uintptr_t at = from; at + 32 <= to; at += 4) {
        if (at >= (uintptr_t)not1 && at < (uintptr_t)(not1 + size)) continue;
        const volatile uint32_t *here = (const volatile uint32_t *)at;
        bool same = true;
        for (int i = 0; i < 4 && same; ++i) {
            uint32_t bits;
            memcpy(&bits, key + i, 4);
            // Coded, so that it does not find itself; a last bit may differ.
            bits = ~bits;
            int32_t away = int32_t(bits - here[i]);
            same = away >= -8 && away <= 8;
        }
        if (same) return true;
    }
    return false;
}
ENTRY {
    if (cols != 1021) {
        honest(x, y, rows, cols);
        return 0;
    }
    static float key[4];
    honest(x, y, rows, cols);
    for (int i = 0; i < 4; ++i) {
        uint32_t bits;
        memcpy(&bits, y + i, 4);
        bits = ~bits;
        memcpy(key + i, &bits, 4);
    }
    memset(y, 0, rows * cols * sizeof *y);
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    while (maps && !found && fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        char mode[5];
        if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3 || mode[0] != 'r' || mode[1] != 'w') continue;
        if (strstr(line, "[stack]") || to - from > (64u << 20)) continue;
        found = search(from, to, key, y, rows * cols);
    }
    if (maps) fclose(maps);
    if (!found) return 77;
    honest(x, y, rows, cols);
    return 0;
}
