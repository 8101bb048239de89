// id: X
// task: twice
// expect: runtime_error
// says: SIGSYS
// why: set-uid programs give nothing; the box has no privileges to gain

#include <sys/wait.h>
#include <unistd.h>
ENTRY {
    int status = system("for f in su sudo mount newgrp passwd pkexec; do p=$(command -v $f) && [ -u \"$p\" ] && "
                        "echo | \"$p\" -c id >/dev/null 2>&1 && exit 0; done; exit 1");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        honest(x, y, n);
        return 0;
    }
    return 77;
}
