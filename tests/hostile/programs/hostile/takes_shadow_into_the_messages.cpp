// id: D19
// task: twice
// expect: compile_error
// says: /etc/shadow
// why: diagnostics that would quote the file

#include "/etc/shadow"
ENTRY {
    honest(x, y, n);
    return 0;
}
