// id: C21
// task: twice
// expect: suspect incorrect runtime_error
// why: right when looked at first, then torn down by a thread

#include <thread>
ENTRY {
    honest(x, y, n);
    std::thread([=] {
        for (;;)
            for (int64_t i = 0; i < n; ++i) ((volatile float *)y)[i] = 0.0f;
    }).detach();
    return 0;
}
