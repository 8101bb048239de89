// id: X
// task: twice_opencl
// expect: compile_error
// why: a number where the kernel takes an address

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(int64(4096), y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
}
