// id: D10
// task: twice
// expect: timeout runtime_error resource_limit
// run_ms: 1000
// why: thread bomb

#include <thread>
#include <unistd.h>
ENTRY {
    for (;;) std::thread([] { for (;;) pause(); }).detach();
}
