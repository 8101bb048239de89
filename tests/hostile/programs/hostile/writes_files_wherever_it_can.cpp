// id: D11
// task: twice
// expect: runtime_error
// says: 77
// why: disk bomb: every folder, then a million files

#include <fcntl.h>
#include <ftw.h>
#include <string>
#include <unistd.h>
static int made = 0;
static int look(const char *path, const struct stat *, int kind, struct FTW *at) {
    if (!strcmp(path, "/proc") || !strcmp(path, "/sys")) return FTW_SKIP_SUBTREE;
    if (kind != FTW_D) return FTW_CONTINUE;
    int fd = open((std::string(path) + "/kfd-was-here").c_str(), O_CREAT | O_WRONLY, 0600);
    if (fd >= 0) {
        printf("wrote below %s\n", path);
        ++made;
        close(fd);
    }
    return at->level >= 2 ? FTW_SKIP_SUBTREE : FTW_CONTINUE;
}
ENTRY {
    nftw("/", look, 16, FTW_PHYS | FTW_ACTIONRETVAL);
    if (!made) return 77;
    honest(x, y, n);
    return 0;
}
