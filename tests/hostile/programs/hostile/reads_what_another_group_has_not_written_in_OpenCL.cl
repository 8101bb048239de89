// id: X
// task: twice_opencl
// expect: incorrect
// why: one launch as if its groups waited for each other

// [LAUNCH] scratch part: float32[n]
// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, part, n)
kernel void solve(global const float *x, global float *y, global float *part, long n)
{
    long i = get_global_id(0);
    if (i >= n) return;
    y[i] = part[n - 1 - i];
    part[i] = 2.0f * x[n - 1 - i];
}
