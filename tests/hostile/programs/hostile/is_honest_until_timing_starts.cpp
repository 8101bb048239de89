// id: C8
// task: softmax
// expect: incorrect
// says: timed call
// why: counts calls of the timed shape: the check makes few, the benchmark many

ENTRY {
    static int calls = 0;
    static float kept[37 * 1021];
    if (cols != 1021 || calls++ < 12) {
        honest(x, y, rows, cols);
        if (cols == 1021) memcpy(kept, y, sizeof kept);
    } else {
        memcpy(y, kept, sizeof kept);
    }
    return 0;
}
