// id: D12
// task: twice_opencl
// expect: timeout
// says: running
// why: never ends

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    volatile long turns = 1;
    while (turns > 0) turns = turns * 3 % 1000 + 1;
    if (i < n) y[i] = 2.0f * x[i];
}
