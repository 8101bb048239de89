// id: X
// task: twice_opencl
// expect: compile_error
// why: scratch buffers beyond the memory limit

// [LAUNCH] scratch part: float32[n * 1000000000, n]
// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
}
