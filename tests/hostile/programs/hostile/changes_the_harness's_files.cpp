// id: D15
// task: twice
// expect: runtime_error
// says: 77
// why: what the next run would import or load

#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
ENTRY {
    bool found = false;
    for (const char *path : {"/kfd/child.py", "/job/kernel.so", "/usr/lib/python3/dist-packages/sitecustomize.py", "/sitecustomize.py",
                             "/kfd/torch.py", "/kfd/sitecustomize.py", "/job/kernel2.so", "/etc/ld.so.preload", "/etc/ld.so.cache"}) {
        chmod(path, 0777);
        int fd = open(path, O_WRONLY | O_CREAT, 0777);
        found |= fd >= 0;
        found |= rename(path, (std::string(path) + ".old").c_str()) == 0 || unlink(path) == 0;
        if (found) printf("changed %s\n", path);
    }
    if (!found) return 77;
    honest(x, y, n);
    return 0;
}
