// id: C2
// task: softmax
// expect: incorrect suspect
// why: the caller's half is done, the other half is late

#include <thread>
#include <unistd.h>
ENTRY {
    int64_t half = rows / 2;
    std::thread([=] {
        usleep(500);
        honest(x + half * cols, y + half * cols, rows - half, cols);
    }).detach();
    honest(x, y, half, cols);
    return 0;
}
