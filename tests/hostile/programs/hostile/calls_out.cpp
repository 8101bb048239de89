// id: D13
// task: twice
// expect: runtime_error
// says: 77
// why: TCP, UDP, names and abstract sockets

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
static bool reaches(const char *address, int port, int kind) {
    int fd = socket(AF_INET, kind, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    inet_pton(AF_INET, address, &to.sin_addr);
    timeval soon{0, 50000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    bool got = connect(fd, (sockaddr *)&to, sizeof to) == 0 && send(fd, "x", 1, MSG_NOSIGNAL) == 1;
    close(fd);
    return got;
}
ENTRY {
    bool got = reaches("127.0.0.1", 22, SOCK_STREAM) || reaches("8.8.8.8", 53, SOCK_DGRAM) ||
               reaches("169.254.169.254", 80, SOCK_STREAM) || reaches("1.1.1.1", 443, SOCK_STREAM);
    addrinfo *found = nullptr;
    got |= getaddrinfo("example.com", "80", nullptr, &found) == 0;
    for (const char *name : {"/tmp/.X11-unix/X0", "/com/ubuntu/upstart", "/org/freedesktop/systemd1/private"}) {
        sockaddr_un to{};
        to.sun_family = AF_UNIX;
        strcpy(to.sun_path + 1, name);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        got |= connect(fd, (sockaddr *)&to, sizeof(sa_family_t) + 1 + strlen(name)) == 0;
        close(fd);
    }
    if (!got) return 77;
    honest(x, y, n);
    return 0;
}
