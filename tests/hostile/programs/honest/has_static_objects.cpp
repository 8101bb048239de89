// id: D20
// task: scan
// expect: ok
// why: C++ static initialisation and destructors, with memory of their own

#include <memory>
#include <string>
#include <vector>
static const std::string name = "scan";
static const std::vector<int> widths{8, 16, 32};
static std::unique_ptr<int64_t[]> room(new int64_t[64]());
ENTRY {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        sum += x[i];
        room[i % 64] = sum;
        y[i] = room[i % 64] + int64_t(widths.size()) - 3 + int64_t(name.size()) - 4;
    }
    return 0;
}
