// id: D7
// task: softmax
// expect: incorrect suspect runtime_error
// why: the order lies in its own memory: it sends the right answer first and works afterwards

#include <sys/socket.h>
#include <unistd.h>
static uint64_t nonce_of(int64_t) {
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps) return 0;
    char line[512];
    uint64_t found = 0;
    while (fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        char mode[5];
        if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3 || strcmp(mode, "rw-p") || to - from > (64u << 20)) continue;
        if (strstr(line, "kernel.so") || strstr(line, "[stack]")) continue;
        for (uintptr_t at = from; at + 64 <= to; at += 16) {
            // A bytes object: reference count, type, length 16 + 2, hash, then b"C", pad, count, map, nonce.
            const int64_t *head = (const int64_t *)at;
            const unsigned char *body = (const unsigned char *)at + 32;
            if (head[2] < 18 || head[2] > 200 || head[0] < 1 || head[0] > 9 || body[0] != 'C' || body[1]) continue;
            uint64_t nonce;
            memcpy(&nonce, body + 8, 8);
            if (nonce) found = nonce;
        }
    }
    fclose(maps);
    return found;
}
ENTRY {
    struct __attribute__((packed)) {
        char magic[4];
        uint32_t kind;
        uint64_t nonce;
        int32_t status;
        uint64_t ns;
        char text[256];
    } answer{};
    memcpy(answer.magic, "kfd1", 4);
    answer.kind = 4;
    answer.nonce = nonce_of(rows);
    if (!answer.nonce) return 77;
    for (int fd = 3; fd < 64; ++fd) send(fd, &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL);
    usleep(2000);
    honest(x, y, rows, cols);
    return 0;
}
