// id: A4
// task: softmax
// expect: incorrect
// why: copies what an allocator hands out, hoping for a right answer that somebody has freed

ENTRY {
    size_t bytes = rows * cols * sizeof *y;
    float *stale = (float *)malloc(bytes);
    if (!stale) return 1;
    memcpy(y, stale, bytes);
    free(stale);
    return 0;
}
