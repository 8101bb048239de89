// id: C20
// task: twice
// expect: incorrect
// why: everything is computed in a constructor, for inputs that have not been drawn yet

static float ready[1 << 20];
__attribute__((constructor)) static void early() {
    unsigned dice = 0;
    for (float &one : ready) one = 2.0f * float((dice = dice * 1664525u + 1013904223u) >> 8) / 1.6e7f;
}
ENTRY {
    memcpy(y, ready, std::min<int64_t>(n, 1 << 20) * sizeof *y);
    return 0;
}
