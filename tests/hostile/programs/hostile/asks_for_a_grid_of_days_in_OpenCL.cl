// id: X
// task: twice_opencl
// expect: timeout
// why: a grid within all bounds that takes days

// [LAUNCH] launch solve grid(1000000000) block(1024) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
}
