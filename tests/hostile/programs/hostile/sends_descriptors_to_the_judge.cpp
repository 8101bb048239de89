// id: D7
// task: twice
// expect: suspect
// why: many descriptors with a forged answer, to exhaust or confuse whoever takes them

#include <sys/socket.h>
#include <unistd.h>
ENTRY {
    char answer[284] = "kfd1\4";
    int many[64];
    for (int &one : many) one = dup(2);
    for (int fd = 3; fd < 16; ++fd) {
        iovec part{answer, sizeof answer};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof many)] = {};
        msghdr message{};
        message.msg_iov = &part, message.msg_iovlen = 1;
        message.msg_control = control, message.msg_controllen = sizeof control;
        cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof many);
        memcpy(CMSG_DATA(head), many, sizeof many);
        sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    honest(x, y, n);
    return 0;
}
