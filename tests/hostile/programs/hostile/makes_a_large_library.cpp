// id: D19
// task: twice
// expect: resource_limit
// why: a hundred megabytes where sixteen are allowed

char big[100ul << 20] = {1};
ENTRY {
    honest(x, y, n);
    return 0;
}
