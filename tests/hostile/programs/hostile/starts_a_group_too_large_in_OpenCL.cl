// id: X
// task: twice_opencl
// expect: compile_error
// why: a group larger than any device takes

// [LAUNCH] launch solve grid(1) block(n * 64, 1024, 64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
}
