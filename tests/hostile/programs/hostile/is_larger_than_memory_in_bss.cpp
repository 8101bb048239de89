// id: D20
// task: twice
// expect: load_error resource_limit
// why: a terabyte of zeros costs nothing until it is loaded

volatile char room[1ul << 40];
ENTRY {
    honest(x, y, n);
    return room[n];
}
