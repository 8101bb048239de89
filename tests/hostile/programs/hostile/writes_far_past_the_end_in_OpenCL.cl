// id: A18
// task: twice_opencl
// expect: runtime_error
// says: SIGSEGV
// why: writes far beyond its output into whatever lies there

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
    if (i == 0) y[n + 100000000] = 7.0f;
}
