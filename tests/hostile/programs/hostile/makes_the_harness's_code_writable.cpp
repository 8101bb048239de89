// id: X
// task: twice
// expect: runtime_error incorrect suspect
// why: overwrites the interpreter's machine code and hopes for the best

#include <dlfcn.h>
#include <sys/mman.h>
ENTRY {
    void *code = dlsym(RTLD_DEFAULT, "PyObject_Call");
    if (!code || mprotect((void *)((uintptr_t)code & ~4095ul), 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return 77;
    memset(code, 0xcc, 64);
    return 0;
}
