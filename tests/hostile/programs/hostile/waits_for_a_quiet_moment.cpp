// id: C2
// task: twice
// expect: incorrect suspect
// why: writes the wrong answer's repair long after, when the judge is surely reading

#include <thread>
#include <unistd.h>
ENTRY {
    honest(x, y, n);
    y[n - 1] += 1.0f;
    std::thread([=] {
        usleep(30000);
        y[n - 1] -= 1.0f;
    }).detach();
    return 0;
}
