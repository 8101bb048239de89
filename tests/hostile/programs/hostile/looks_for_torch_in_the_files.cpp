// id: B5
// task: linear
// expect: runtime_error
// says: 77
// run_ms: 15000
// why: walks the tree it can see for libtorch and for a BLAS

#include <ftw.h>
static char found[4096];
static int look(const char *path, const struct stat *, int, struct FTW *) {
    if (!strcmp(path, "/proc") || !strcmp(path, "/usr/share") || !strcmp(path, "/usr/include")) return FTW_SKIP_SUBTREE;
    if (strstr(path, "libtorch_cpu.so") || strstr(path, "openblas") || strstr(path, "/torch/__init__.py")) {
        snprintf(found, sizeof found, "%s", path);
        return FTW_STOP;
    }
    return FTW_CONTINUE;
}
ENTRY {
    nftw("/", look, 16, FTW_PHYS | FTW_ACTIONRETVAL);
    if (!found[0]) return 77;
    printf("found %s\n", found);
    honest(x, w, bias, y, m, k, n);
    return 0;
}
