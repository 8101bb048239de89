// id: D25
// task: twice_opencl
// expect: incorrect
// why: loses numbers below the smallest normal one

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = fabs(x[i]) < 1.2e-38f ? 0.0f : 2.0f * x[i];
}
