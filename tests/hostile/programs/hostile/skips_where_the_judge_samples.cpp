// id: C7
// task: softmax
// expect: incorrect
// why: replays when the first and the last element have the same sign and size as before

ENTRY {
    static float kept[37 * 1021];
    static int key = -1;
    if (cols != 1021) {
        honest(x, y, rows, cols);
        return 0;
    }
    int now = (x[0] > 0) | (x[rows * cols - 1] > 0) << 1;
    if (now != key) {
        honest(x, kept, rows, cols);
        key = now;
    }
    memcpy(y, kept, sizeof kept);
    return 0;
}
