// id: C2
// task: twice
// expect: incorrect suspect
// why: returns at once, a thread computes while nobody looks

#include <thread>
#include <unistd.h>
ENTRY {
    std::thread([=] {
        usleep(3000);
        honest(x, y, n);
    }).detach();
    return 0;
}
