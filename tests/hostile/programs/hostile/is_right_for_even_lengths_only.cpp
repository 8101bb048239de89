// id: A9
// task: twice
// expect: incorrect
// why: pairs of elements, the odd one is left

ENTRY {
    honest(x, y, n / 2 * 2);
    return 0;
}
