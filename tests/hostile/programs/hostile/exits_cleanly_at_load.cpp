// id: D8
// task: twice
// expect: load_error
// says: exited with code 0
// why: nothing said, nothing wrong

#include <unistd.h>
__attribute__((constructor)) static void early() { _exit(0); }
ENTRY { return 0; }
