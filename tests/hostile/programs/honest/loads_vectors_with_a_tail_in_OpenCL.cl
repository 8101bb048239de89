// id: X
// task: twice_opencl
// expect: ok
// why: four elements at a time, the rest one by one

// [LAUNCH] launch solve grid(ceildiv(ceildiv(n, 4), 32)) block(32) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (4 * i + 3 < n) vstore4(2.0f * vload4(i, x), i, y);
    else for (long k = 4 * i; k < n; ++k) y[k] = 2.0f * x[k];
}
