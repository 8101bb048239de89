// id: X
// task: twice_opencl
// expect: compile_error
// says: argument 3
// why: an address where the kernel takes a number

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, y)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
}
