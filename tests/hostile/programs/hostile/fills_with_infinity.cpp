// id: A13
// task: twice
// expect: incorrect
// says: finite
// why: infinite errors over infinite bounds

ENTRY {
    std::fill(y, y + n, __builtin_inff());
    return 0;
}
