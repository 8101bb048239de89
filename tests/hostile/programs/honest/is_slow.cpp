// id: C13
// task: twice
// expect: ok
// why: a poor kernel is a right kernel

ENTRY {
    for (int64_t i = 0; i < n; ++i) ((volatile float *)y)[i] = float(double(x[i]) * std::sqrt(4.0));
    return 0;
}
