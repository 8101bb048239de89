// id: A5
// task: softmax
// expect: incorrect
// why: computes each shape once and replays it

static float kept[1 << 20];
static int64_t had_rows, had_cols;
ENTRY {
    if (had_rows != rows || had_cols != cols) {
        honest(x, kept, rows, cols);
        had_rows = rows, had_cols = cols;
    }
    memcpy(y, kept, rows * cols * sizeof *y);
    return 0;
}
