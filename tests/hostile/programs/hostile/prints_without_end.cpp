// id: D11
// task: twice
// expect: resource_limit
// says: output
// why: log bomb of a gigabyte

#include <unistd.h>
ENTRY {
    static char line[1 << 20];
    memset(line, 'x', sizeof line);
    for (int i = 0; i < 1024; ++i)
        if (write(1 + i % 2, line, sizeof line) < 0) return 77;
    honest(x, y, n);
    return 0;
}
