// id: X
// task: twice
// expect: runtime_error
// says: SIGSYS
// why: privileges: user namespaces, mounts, other users, devices

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
ENTRY {
    bool got = unshare(CLONE_NEWUSER) == 0 || unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWNET) == 0;
    got |= mount("none", "/usr", "tmpfs", 0, nullptr) == 0 || umount2("/usr", MNT_DETACH) == 0;
    got |= mount("none", "/", nullptr, MS_REMOUNT | MS_BIND, nullptr) == 0;
    got |= mknod("/dev/sda", S_IFBLK | 0600, makedev(8, 0)) == 0 || chroot("/usr") == 0;
    got |= getuid() != 0 && setuid(0) == 0;
    got |= sethostname("mine", 4) == 0;
    if (!got) return 77;
    honest(x, y, n);
    return 0;
}
