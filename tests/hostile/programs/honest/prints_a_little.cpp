// id: D6
// task: twice
// expect: ok
// why: a forgotten debug line on both streams

ENTRY {
    static int calls = 0;
    if (calls++ < 3) {
        printf("solve n=%ld\n", long(n));
        fprintf(stderr, "warning: block size not tuned\n");
    }
    honest(x, y, n);
    return 0;
}
