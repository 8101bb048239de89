// id: D20
// task: twice
// expect: load_error
// says: SIGABRT
// why: a static initialiser that throws

#include <stdexcept>
static int early() { throw std::runtime_error("early"); }
static int value = early();
ENTRY {
    honest(x, y, n);
    return value;
}
