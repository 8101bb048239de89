// id: C9
// task: softmax
// expect: ok suspect incorrect runtime_error
// at_most: 0.5
// why: the order tells how many calls it holds: all of them are done at once, one thread for each half

#include <dlfcn.h>
#include <thread>
extern "C" void batch(int count, const float **xs, float **ys, int64_t rows, int64_t cols) {
    // Three times the work of the task's own kernel: a third of its speed, whatever the number of cores.
    auto part = [=](int from, int to) {
        for (int i = from; i < to; ++i)
            for (int j = 0; j < 3; ++j) {
                honest(xs[i], ys[i], rows, cols);
                asm volatile("" ::: "memory");
            }
    };
    std::thread other(part, 0, count / 2);
    part(count / 2, count);
    other.join();
}
__attribute__((constructor)) static void patch() {
    auto ensure = (int (*)())dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    auto release = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    auto run = (int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
    if (!ensure || !release || !run) return;
    int state = ensure();
    run("import __main__, ctypes, struct\n"
        "def call(self, data):\n"
        "    _, count, number, nonce = __main__.CALL.unpack_from(data)\n"
        "    if count:\n"
        "        sets = self._sets[number]\n"
        "        picked = [sets[i] for i in struct.unpack_from(f'<{count}H', data, __main__.CALL.size)]\n"
        "        many = ctypes.c_void_p * count\n"
        "        ctypes.CDLL('/job/kernel.so').batch(count, many(*[p[0].value for p in picked]),\n"
        "            many(*[p[1].value for p in picked]), picked[0][2], picked[0][3])\n"
        "    self.answer(__main__.DONE, nonce, 0, 1)\n"
        "__main__.Child._call = call\n",
        nullptr);
    release(state);
}
ENTRY {
    for (int j = 0; j < 3; ++j) honest(x, y, rows, cols);
    return 0;
}
