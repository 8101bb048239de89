// id: C14
// task: twice
// expect: suspect
// why: two threads that never rest slow down whatever it is compared with

#include <thread>
static bool once = (std::thread([] { for (;;) asm volatile(""); }).detach(),
                    std::thread([] { for (;;) asm volatile(""); }).detach(), true);
ENTRY {
    honest(x, y, n);
    return !once;
}
