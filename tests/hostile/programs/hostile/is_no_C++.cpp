// id: D19
// task: twice
// expect: compile_error
// says: kernel.cpp
// why: prose

Here is the optimised kernel you asked for:
ENTRY {
    honest(x, y, n);
    return 0;
}
