// id: D20
// task: twice
// expect: load_error
// says: SIG
// why: a pointer to nowhere among the functions that run at load

__attribute__((section(".init_array"), used)) static void (*nowhere)() = (void (*)())8;
ENTRY {
    honest(x, y, n);
    return 0;
}
