// id: A4
// task: twice_opencl
// expect: incorrect
// why: reads its output before anything was written there

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = i % 2 ? 2.0f * x[i] : y[i];
}
