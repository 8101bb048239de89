// id: D11
// task: twice
// expect: ok
// why: aligned_alloc and free

ENTRY {
    size_t bytes = (n * sizeof *x + 63) / 64 * 64;
    float *room = static_cast<float *>(std::aligned_alloc(64, bytes));
    if (!room) return 1;
    memcpy(room, x, n * sizeof *x);
    for (int64_t i = 0; i < n; ++i) y[i] = room[i] * 2.0f;
    std::free(room);
    return 0;
}
