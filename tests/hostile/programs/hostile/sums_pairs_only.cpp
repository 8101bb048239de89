// id: A16
// task: softmax
// expect: incorrect
// why: a race: threads add to one sum without a lock

#include <thread>
#include <vector>
ENTRY {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = *std::max_element(x, x + cols);
        volatile float sum = 0;
        auto part = [&](int64_t from, int64_t to) {
            for (int64_t c = from; c < to; ++c) {
                y[c] = std::exp(x[c] - top);
                float before = sum;
                if (c % 8 == 3) std::this_thread::yield();
                sum = before + y[c];
            }
        };
        if (cols < 1000 || r % 12) {
            part(0, cols);
        } else {
            std::thread other(part, cols / 2, cols);
            part(0, cols / 2);
            other.join();
        }
        for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
    }
    return 0;
}
