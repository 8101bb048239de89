// id: C4
// task: softmax
// expect: incorrect suspect runtime_error
// why: Python's part of the harness answers "done" without calling anything

#include <dlfcn.h>
ENTRY {
    static int calls = 0;
    honest(x, y, rows, cols);
    if (calls++) return 0;
    auto ensure = (int (*)())dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    auto release = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    auto run = (int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
    if (!ensure || !release || !run) return 77;
    int state = ensure();
    int failed = run("import __main__, struct\n"
                     "def lie(self, data):\n"
                     "    _, count, number, nonce = __main__.CALL.unpack_from(data)\n"
                     "    self.answer(__main__.DONE, nonce, 0, 1)\n"
                     "__main__.Child._call = lie\n",
                     nullptr);
    release(state);
    return failed ? 77 : 0;
}
