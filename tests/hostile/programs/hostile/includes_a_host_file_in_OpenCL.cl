// id: D19
// task: twice_opencl
// expect: compile_error
// why: takes a file of the host into the source

#include "/etc/passwd"
// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
}
