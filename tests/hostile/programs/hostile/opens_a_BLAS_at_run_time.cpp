// id: B5
// task: linear
// expect: runtime_error
// says: 77
// why: no linear algebra library is in the box

#include <dlfcn.h>
#include <string>
ENTRY {
    typedef void (*Gemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
    const char *libraries[] = {"libopenblas.so.0", "libopenblas.so", "libblas.so.3",   "libcblas.so.3", "libmkl_rt.so.2",
                               "libmkl_rt.so",     "libatlas.so.3",  "libtorch_cpu.so", "libtorch.so",   "libblis.so.4"};
    Gemm gemm = (Gemm)dlsym(RTLD_DEFAULT, "cblas_sgemm");
    for (const char *name : libraries)
        if (!gemm)
            if (void *library = dlopen(name, RTLD_NOW)) gemm = (Gemm)dlsym(library, "cblas_sgemm");
    if (!gemm) return 77;
    for (int64_t i = 0; i < m; ++i) memcpy(y + i * n, bias, n * sizeof *y);
    gemm(101, 111, 111, m, n, k, 1.0f, x, k, w, n, 1.0f, y, n);
    for (int64_t i = 0; i < m * n; ++i) y[i] = std::max(y[i], 0.0f);
    return 0;
}
