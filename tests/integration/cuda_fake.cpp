// A CUDA driver without a device, for the tests of cuda_child.py: memory is host memory, kernels are functions of this
// file, and every call costs 50 us. It is strict where the real one is: a stream that waits for a number that nobody
// has written never finishes, freed memory cannot be used, and after a trap every call fails.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace {
std::map<uintptr_t, size_t> blocks;
std::vector<std::string> names;
bool lost = false, refuse_wait = getenv("FAKE_NO_WAIT") != nullptr;
volatile uint32_t *waited = nullptr;
uint32_t wanted = 0;
long launches = 0;
size_t held = 0;

bool inside(uintptr_t at, size_t size) {
    auto next = blocks.upper_bound(at);
    if (next == blocks.begin()) return false;
    --next;
    return at >= next->first && at + size <= next->first + next->second;
}
}  // namespace

#define API extern "C" int
#define ALIVE if (lost) return 719

API cuInit(unsigned) { return getenv("FAKE_NO_DEVICE") ? 100 : 0; }
API cuDriverGetVersion(int *v) { *v = 13000; return 0; }
API cuDeviceGet(int *d, int) { *d = 0; return 0; }
API cuDeviceGetName(char *n, int size, int) { snprintf(n, size, "fake"); return 0; }
API cuDeviceGetAttribute(int *v, int which, int) {
    *v = which == 38 ? 1 << 20 : which == 75 ? 9 : 0;
    return 0;
}
API cuDevicePrimaryCtxSetFlags_v2(int, unsigned) { return 0; }
API cuDevicePrimaryCtxRetain(void **c, int) { *c = (void *)1; return 0; }
API cuCtxSetCurrent(void *) { return 0; }
API cuCtxSynchronize() { ALIVE; return waited && *waited < wanted ? 702 : 0; }
API cuCtxSetLimit(int, size_t) { return 0; }
API cuCtxResetPersistingL2Cache() { return 801; }
API cuModuleLoadData(void **m, const char *image) {
    ALIVE;
    if (!strncmp(image, "bad", 3)) return 200;
    *m = (void *)2;
    return 0;
}
API cuModuleUnload(void *) { return 0; }
API cuModuleGetFunction(void **f, void *, const char *name) {
    if (!strncmp(name, "missing", 7)) return 500;
    names.push_back(name);
    *f = (void *)names.size();
    return 0;
}
API cuFuncGetParamInfo(void *f, size_t index, size_t *offset, size_t *size) {
    const std::string &name = names[(size_t)f - 1];
    *offset = 8 * index;
    *size = 8;
    return index < (name == "scratch" || name == "hidden" ? 5 : 3) ? 0 : 1;
}
API cuFuncSetAttribute(void *, int, int value) { return value > 227 * 1024 ? 1 : 0; }
API cuMemGetInfo_v2(size_t *f, size_t *t) { *f = (size_t(64) << 30) - held; *t = size_t(64) << 30; return 0; }
API cuMemAlloc_v2(uint64_t *p, size_t size) {
    ALIVE;
    void *made = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!made) return 2;
    blocks[(uintptr_t)made] = size;
    held += size;
    *p = (uintptr_t)made;
    return 0;
}
API cuMemFree_v2(uint64_t p) {
    ALIVE;
    auto found = blocks.find(p);
    if (found == blocks.end()) return 1;
    for (size_t i = 0; i < found->second; ++i)
        if (((char *)p)[i]) return 1;  // what is given back must have been overwritten
    held -= found->second;
    blocks.erase(found);
    free((void *)p);
    return 0;
}
API cuMemcpyHtoD_v2(uint64_t d, const void *s, size_t n) {
    ALIVE;
    if (!inside(d, n)) return 1;
    memcpy((void *)d, s, n);
    return 0;
}
API cuMemcpyDtoH_v2(void *d, uint64_t s, size_t n) {
    ALIVE;
    if (!inside(s, n)) return 1;
    memcpy(d, (void *)s, n);
    return 0;
}
API cuMemsetD8_v2(uint64_t d, unsigned char v, size_t n) {
    ALIVE;
    if (!inside(d, n)) return 1;
    memset((void *)d, v, n);
    return 0;
}
API cuMemsetD32Async(uint64_t d, unsigned v, size_t n, void *) { return v ? 1 : cuMemsetD8_v2(d, 0, n * 4); }
API cuMemHostAlloc(void **p, size_t n, unsigned) { *p = calloc(1, n); return 0; }
API cuMemHostGetDevicePointer_v2(uint64_t *d, void *h, unsigned) { *d = (uintptr_t)h; return 0; }
API cuStreamCreate(void **s, unsigned) { *s = (void *)3; return 0; }
API cuStreamWaitValue32_v2(void *, uint64_t at, uint32_t value, unsigned) {
    ALIVE;
    if (refuse_wait) return 801;
    waited = (volatile uint32_t *)at;
    wanted = value;
    return 0;
}
API cuStreamSynchronize(void *) {
    if (lost) return 719;
    // Nobody has released the stream: the real one would wait for ever.
    return waited && *waited < wanted ? 702 : 0;
}
API cuEventCreate(long **e, unsigned) { *e = new long(0); return 0; }
API cuEventRecord(long *e, void *) { *e = launches; return 0; }
API cuEventElapsedTime(float *ms, long *a, long *b) { *ms = 0.0012f + 0.05f * (*b - *a); return 0; }
API cuGetErrorName(int code, const char **name) {
    *name = code == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OTHER";
    return 0;
}
API cuGetErrorString(int code, const char **name) { return cuGetErrorName(code, name); }

// The kernels: (const float *x, float *y, int64_t n), more by name.
API cuLaunchKernel(void *f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned, void *,
                   void **args, void **) {
    ALIVE;
    if (!gx || bx > 1024) return 1;
    const std::string &name = names[(size_t)f - 1];
    if (name == "kfd_shield") return 0;
    ++launches;
    // Some launches of the real one wait for the device first.
    while (name == "waits" && waited && *waited < wanted) usleep(1000);
    float *x = *(float **)args[0], *y = *(float **)args[1];
    int64_t n = *(int64_t *)args[2];
    if (name == "trap") { lost = true; return 0; }
    if (name == "idle") return 0;
    // Whatever a kernel prints or asserts is written by the driver: more than a pipe holds.
    for (int line = 0; name == "noisy" && line < 20000; ++line)
        if (write(1 + line % 2, "assertion failed\n", 17) < 0) return 999;
    if (name == "scribble") x[0] = 7;
    if (name == "half") n /= 2;
    if (name == "softmax") {
        for (float *in = x, *out = y; in < x + gx * n; in += n, out += n) {
            double top = *std::max_element(in, in + n), sum = 0;
            for (int64_t j = 0; j < n; ++j) sum += std::exp(in[j] - top);
            for (int64_t j = 0; j < n; ++j) out[j] = std::exp(in[j] - top) / sum;
        }
        return 0;
    }
    for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
    if (name == "overrun") memset(y + n, 1, 8192);
    if (name == "next_to") y[n + 2] = 3;
    if (name == "before") x[-2000] = 3;
    if (name == "scratch") {
        float *s = *(float **)args[3];
        s[0] = 1;
        memset((char *)s + 64, 0, *(int64_t *)args[4]);
    }
    if (name == "hidden") y[0] = *(void **)args[3] == nullptr && *(void **)args[4] != nullptr ? 1 : 0;
    return 0;
}
