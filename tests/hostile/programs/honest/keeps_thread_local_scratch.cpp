// id: C6
// task: softmax
// expect: ok
// why: thread_local buffers in a parallel loop

#include <vector>
ENTRY {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        static thread_local std::vector<float> room;
        room.assign(x + r * cols, x + (r + 1) * cols);
        honest(room.data(), y + r * cols, 1, cols);
    }
    return 0;
}
