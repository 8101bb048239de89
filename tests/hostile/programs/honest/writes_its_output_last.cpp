// id: C21
// task: softmax
// expect: ok
// why: everything in scratch, the output in one copy at the very end

#include <vector>
ENTRY {
    std::vector<float> room(rows * cols);
    honest(x, room.data(), rows, cols);
    memcpy(y, room.data(), room.size() * sizeof *y);
    return 0;
}
