// id: A3
// task: scan
// expect: incorrect
// says: values differ
// why: identity for integers, cast to the output's type

ENTRY {
    std::copy(x, x + n, y);
    return 0;
}
