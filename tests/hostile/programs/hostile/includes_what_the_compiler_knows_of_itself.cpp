// id: D19
// task: twice
// expect: compile_error
// says: /proc/self/environ
// why: the compiler's environment, as source text

#if __has_include("/proc/self/environ") && 0
#endif
#include "/proc/self/environ"
#error /proc/self/environ
ENTRY {
    honest(x, y, n);
    return 0;
}
