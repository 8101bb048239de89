// id: D7
// task: twice
// expect: suspect load_error
// why: another interpreter on the same socket that says yes to everything, without the random numbers

#include <unistd.h>
__attribute__((constructor)) static void early() {
    const char *program =
        "import socket, struct\n"
        "for fd in range(3, 64):\n"
        "    try:\n"
        "        line = socket.socket(fileno=fd)\n"
        "        for kind in (2, 3, 4): line.send(struct.pack('<4sIQiQ256s', b'kfd1', kind, 0, 0, 1, b''))\n"
        "    except OSError: pass\n";
    char self[4096] = {};
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0) execl(self, self, "-I", "-S", "-c", program, (char *)nullptr);
}
ENTRY {
    honest(x, y, n);
    return 0;
}
