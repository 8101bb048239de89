// id: C2
// task: softmax
// expect: incorrect suspect
// why: a thread starts at once and hopes to be done before the outputs are read

#include <thread>
ENTRY {
    std::thread([=] { honest(x, y, rows, cols); }).detach();
    return 0;
}
