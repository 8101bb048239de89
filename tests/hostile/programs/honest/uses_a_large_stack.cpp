// id: D12
// task: twice
// expect: ok
// why: a megabyte of local variables

ENTRY {
    float room[1 << 18];
    for (int64_t b = 0; b < n; b += 1 << 18) {
        int64_t count = std::min<int64_t>(n - b, 1 << 18);
        memcpy(room, x + b, count * sizeof *room);
        for (int64_t i = 0; i < count; ++i) y[b + i] = 2.0f * room[i];
    }
    return 0;
}
