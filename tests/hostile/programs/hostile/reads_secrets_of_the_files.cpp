// id: D14
// task: twice
// expect: runtime_error
// says: 77
// why: keys, shadow, histories, databases, other jobs, the host's proc

#include <dirent.h>
#include <unistd.h>
ENTRY {
    bool found = false;
    for (const char *path :
         {"/etc/shadow", "/etc/passwd", "/etc/ssh", "/root", "/home", "/var", "/tmp", "/opt", "/run", "/srv", "/mnt",
          "/boot", "/sys/fs/cgroup", "/dev/sda", "/dev/mem", "/dev/shm", "/dev/tty", "/proc/1/root/etc/passwd",
          "/proc/1/cwd/home", "/proc/kcore"}) {
        if (access(path, R_OK)) continue;
        // A folder with one entry only leads to the interpreter, which is all that the box has of the host's own.
        if (DIR *folder = opendir(path)) {
            int entries = 0;
            while (dirent *one = readdir(folder)) entries += strcmp(one->d_name, ".") && strcmp(one->d_name, "..");
            closedir(folder);
            if (entries <= 1) continue;
        }
        printf("can read %s\n", path);
        found = true;
    }
    if (!found) return 77;
    honest(x, y, n);
    return 0;
}
