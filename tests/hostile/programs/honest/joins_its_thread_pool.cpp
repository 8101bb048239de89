// id: C2
// task: softmax
// expect: ok
// why: threads that are all joined before it returns

#include <thread>
#include <vector>
ENTRY {
    std::vector<std::thread> crew;
    int64_t half = rows / 2;
    if (half) crew.emplace_back([=] { honest(x, y, half, cols); });
    honest(x + half * cols, y + half * cols, rows - half, cols);
    for (auto &one : crew) one.join();
    return 0;
}
