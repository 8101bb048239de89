// id: D14
// task: twice
// expect: runtime_error
// says: SIGSYS
// why: ptrace, process_vm_readv and /proc/PID/mem of all that are not its own children

#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
ENTRY {
    bool found = false;
    for (int pid = 1; pid < 400; ++pid) {
        // Where nobody is root the box's first process is one of ours, and holds nothing that we do not.
        struct stat owner{};
        if (pid == getpid() || (pid == 1 && !stat("/proc/1", &owner) && owner.st_uid == getuid())) continue;
        if (ptrace(PTRACE_ATTACH, pid, nullptr, nullptr) == 0) {
            waitpid(pid, nullptr, 0);
            ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
            printf("traced %d\n", pid);
            found = true;
        }
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/mem", pid);
        int fd = open(path, O_RDWR);
        if (fd >= 0) {
            printf("opened the memory of %d\n", pid);
            found = true;
            close(fd);
        }
    }
    if (!found) return 77;
    honest(x, y, n);
    return 0;
}
