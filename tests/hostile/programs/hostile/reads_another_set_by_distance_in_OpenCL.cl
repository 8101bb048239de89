// id: A18
// task: twice_opencl
// expect: runtime_error incorrect
// why: looks for the neighbouring set beside its own input

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i - (n + 1023) / 1024 * 1024 - 2048];
}
