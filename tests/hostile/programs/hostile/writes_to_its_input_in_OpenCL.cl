// id: A14
// task: twice_opencl
// expect: runtime_error
// says: SIGSEGV
// why: casts the qualifier away and halves its input, so that its own answer would be right

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) { ((global float *)x)[i] = x[i] * 2.0f; y[i] = x[i]; }
}
