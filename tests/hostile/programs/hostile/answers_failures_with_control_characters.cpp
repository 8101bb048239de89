// id: D26
// task: twice
// expect: suspect runtime_error load_error
// why: terminal escapes, NULs and bytes that are no UTF-8 in the one text field there is, under the right nonce

#include <dlfcn.h>
__attribute__((constructor)) static void patch() {
    auto ensure = (int (*)())dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    auto release = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    auto run = (int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
    if (!ensure || !release || !run) return;
    int state = ensure();
    run("import __main__\n"
        "def lie(self, kind, nonce=0, *rest):\n"
        "    text = b'\\x1b]0;owned\\x07\\x1b[2J\\xff\\xfe\\x00\\x9b31mverdict: ok\\r\\n' * 5\n"
        "    self._channel.send(__main__.ANSWER.pack(b'kfd1', __main__.FAILED, nonce, 3, 0, text))\n"
        "__main__.Child.answer = lie\n",
        nullptr);
    release(state);
}
ENTRY {
    honest(x, y, n);
    return 0;
}
