// id: A6
// task: twice_opencl
// expect: incorrect
// why: one group fewer than there must be

// [LAUNCH] launch solve grid(max(1, n // 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
}
