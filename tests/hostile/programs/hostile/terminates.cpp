// id: D8
// task: twice
// expect: runtime_error
// says: SIGABRT
// why: std::terminate

#include <exception>
ENTRY {
    honest(x, y, n);
    std::terminate();
}
