// id: D14
// task: twice
// expect: runtime_error
// says: 77
// why: its own environment and that of every process it can see

#include <cctype>
#include <string>
#include <unistd.h>
static bool tells(std::string text) {
    for (char &one : text) one = char(toupper(one));
    for (const char *word : {"TOKEN", "SECRET", "API_KEY", "APIKEY", "PASSW", "SEED", "CREDENTIAL", "SSH_", "KFD_", "/ROOT/.", "HOME=/ROOT", "HOME=/HOME"})
        if (text.find(word) != text.npos) {
            printf("found %s\n", word);
            return true;
        }
    return false;
}
static std::string file(const std::string &path) {
    std::string text;
    if (FILE *from = fopen(path.c_str(), "r")) {
        char piece[4096];
        for (size_t got; text.size() < (1 << 20) && (got = fread(piece, 1, sizeof piece, from)) > 0;) text.append(piece, got);
        fclose(from);
    }
    return text;
}
ENTRY {
    bool found = false;
    for (char **one = environ; *one; ++one) found |= tells(*one);
    for (int pid = 1; pid < 200; ++pid) found |= tells(file("/proc/" + std::to_string(pid) + "/environ"));
    if (!found) return 77;
    honest(x, y, n);
    return 0;
}
