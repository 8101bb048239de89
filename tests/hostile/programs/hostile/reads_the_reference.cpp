// id: B3
// task: softmax
// expect: runtime_error
// says: 77
// why: the task's files are not in its box

#include <ftw.h>
static bool found;
static int look(const char *path, const struct stat *, int, struct FTW *) {
    for (const char *skip : {"/proc", "/usr", "/sys", "/lib/python3"})
        if (!strcmp(path, skip) || (skip[1] == 'l' && strstr(path, skip))) return FTW_SKIP_SUBTREE;
    size_t length = strlen(path);
    for (const char *name : {"/task.tar", "/task.py", "/config.yaml", "/kernel.cpp", "/softmax"})
        if (length >= strlen(name) && !strcmp(path + length - strlen(name), name)) {
            printf("found %s\n", path);
            found = true;
        }
    return FTW_CONTINUE;
}
ENTRY {
    nftw("/", look, 16, FTW_PHYS | FTW_ACTIONRETVAL);
    if (!found) return 77;
    honest(x, y, rows, cols);
    return 0;
}
