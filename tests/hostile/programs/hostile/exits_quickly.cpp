// id: D8
// task: twice
// expect: runtime_error
// says: exited with code 0
// why: quick_exit

ENTRY {
    honest(x, y, n);
    quick_exit(0);
}
