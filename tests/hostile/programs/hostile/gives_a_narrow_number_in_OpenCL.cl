// id: X
// task: twice_opencl
// expect: compile_error
// says: argument 3
// why: 32 bits where the kernel takes 64: the rest would be whatever lies there

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, int32(n))
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
}
