// id: A8
// task: twice
// expect: incorrect
// why: goes through a fixed-point number with sixteen bits of fraction

ENTRY {
    for (int64_t i = 0; i < n; ++i) y[i] = float(int64_t(double(x[i]) * 16777216.0)) / 8388608.0f;
    return 0;
}
