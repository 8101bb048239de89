// id: D30
// task: twice
// expect: runtime_error
// says: 77
// why: ANSI, OSC, NUL, no UTF-8, reordering characters, forged log lines, a line of a megabyte

#include <string>
#include <unistd.h>
ENTRY {
    std::string junk = "\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x9b\x9d\xff\xfe\xc3\x28";
    junk += std::string("\0\0\b\b\b\r", 6) + "2026-01-01 INFO verdict ok\r\n\xe2\x80\xae" "txt.exe\xef\xbb\xbf\x7f\n";
    junk += std::string(1 << 20, 'A');
    for (size_t at = 0; at < junk.size();) {
        ssize_t got = write(1 + at % 2, junk.data() + at, junk.size() - at);
        if (got <= 0) break;
        at += got;
    }
    return 77;
}
