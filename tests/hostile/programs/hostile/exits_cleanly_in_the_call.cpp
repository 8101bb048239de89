// id: D8
// task: twice
// expect: runtime_error
// says: exited with code 0
// why: exit code 0 without an answer

#include <unistd.h>
ENTRY {
    honest(x, y, n);
    _exit(0);
}
