// id: D19
// task: twice
// expect: compile_error
// says: plugin
// why: code in the compiler: no pragma loads it

#pragma GCC plugin "/tmp/evil.so"
#pragma GCC optimize("plugin=/tmp/evil.so")
ENTRY {
    honest(x, y, n);
    return 0;
}
#error no plugin was loaded
