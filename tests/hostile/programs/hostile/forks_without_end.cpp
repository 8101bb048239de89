// id: D10
// task: twice
// expect: timeout runtime_error resource_limit
// run_ms: 1000
// why: fork bomb

#include <unistd.h>
ENTRY {
    for (;;)
        if (fork() == 0)
            for (;;)
                if (fork() < 0) usleep(1000);
}
