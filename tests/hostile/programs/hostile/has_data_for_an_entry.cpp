// id: D8
// task: twice
// expect: load_error runtime_error
// why: the symbol is there, it is no function

extern "C" const double solve[64] = {1.0};
