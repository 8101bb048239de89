// id: C5
// task: softmax
// expect: ok suspect runtime_error
// at_most: 0.3
// why: the first bytes of clock_gettime become "return 0": an inline detour

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((constructor)) static void patch() {
    auto *code = (unsigned char *)dlsym(RTLD_DEFAULT, "clock_gettime");
    if (!code) return;
    auto page = (void *)((uintptr_t)code & ~4095ul);
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return;
    const unsigned char zero[] = {0x31, 0xc0, 0xc3};
    memcpy(code, zero, sizeof zero);
    mprotect(page, 8192, PROT_READ | PROT_EXEC);
}
ENTRY {
    usleep(3000);
    honest(x, y, rows, cols);
    return 0;
}
