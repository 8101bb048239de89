// id: C5
// task: twice
// expect: ok
// why: assembly for an honest addition and a barrier for the compiler

ENTRY {
    for (int64_t i = 0; i < n; ++i) {
        float value = x[i];
#if defined(__x86_64__)
        asm("addss %0, %0" : "+x"(value));
#else
        value += value;
#endif
        y[i] = value;
    }
    asm volatile("" ::: "memory");
    return 0;
}
