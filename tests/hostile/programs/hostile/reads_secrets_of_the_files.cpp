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
         {"/etc/shadow", "/etc/passwd", "/etc/ssh", "/root", "/home", "/var", "/tmp", "/work", "/opt", "/run", "/srv", "/mnt",
          "/boot", "/sys/fs/cgroup", "/dev/sda", "/dev/mem", "/dev/shm", "/dev/tty", "/proc/1/root/etc/passwd",
          "/proc/1/cwd/home", "/proc/kcore"}) {
        if (access(path, R_OK)) continue;
        // Folders that only lead to the interpreter hold nothing else than it.
        if (DIR *folder = opendir(path)) {
            int entries = 0;
            bool only = true;
            while (dirent *one = readdir(folder)) {
                if (one->d_name[0] == '.' && strcmp(one->d_name, ".pyenv")) continue;
                ++entries;
                only &= !strcmp(one->d_name, ".pyenv") || !strcmp(path, "/opt");
            }
            closedir(folder);
            if (!entries || only) continue;
        }
        printf("can read %s\n", path);
        found = true;
    }
    if (!found) return 77;
    honest(x, y, n);
    return 0;
}
