// id: X
// task: twice_opencl
// expect: compile_error
// why: more groups than any device has

// [LAUNCH] launch solve grid(n * 1000000000) block(1024) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
}
