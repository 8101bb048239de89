// id: B5
// task: twice
// expect: runtime_error
// says: 77
// why: the harness is Python, so a candidate can call Python: there is nothing to import

#include <dlfcn.h>
ENTRY {
    auto ensure = (int (*)())dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    auto release = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    auto run = (int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
    if (!ensure || !release || !run) return 77;
    int state = ensure();
    int failed = run("import sys, glob\n"
                     "sys.path += glob.glob('/usr/lib/python3*/*-packages') + glob.glob('/usr/local/lib/python3*/*-packages')\n"
                     "sys.path += glob.glob(sys.prefix + '/lib/python3*/site-packages')\n"
                     "try:\n    import torch\nexcept ImportError:\n    import numpy\n",
                     nullptr);
    release(state);
    if (failed) return 77;
    honest(x, y, n);
    return 0;
}
