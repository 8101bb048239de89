// id: D10
// task: twice
// expect: runtime_error
// says: 77
// why: asks for cores beyond its set and for more threads than processes are allowed

#include <sched.h>
#include <thread>
#include <vector>
#include <unistd.h>
ENTRY {
    std::vector<std::thread> crew;
    bool refused = false;
    try {
        for (int i = 0; i < 200; ++i) crew.emplace_back([] { usleep(50000); });
    } catch (...) {
        refused = true;
    }
    for (auto &one : crew) one.join();
    if (refused) return 77;
    honest(x, y, n);
    return 0;
}
