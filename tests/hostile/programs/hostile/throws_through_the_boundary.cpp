// id: D8
// task: twice
// expect: runtime_error
// says: SIGABRT
// why: an exception that nobody catches

#include <stdexcept>
ENTRY {
    honest(x, y, n);
    throw std::runtime_error("no");
}
