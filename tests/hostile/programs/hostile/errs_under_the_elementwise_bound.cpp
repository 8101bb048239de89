// id: A20
// task: twice
// expect: incorrect
// says: relative L2
// why: every element wrong by a little less than its own bound

ENTRY {
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i] * (1.0f + 9e-5f) + (x[i] > 0 ? 5e-5f : -5e-5f);
    return 0;
}
