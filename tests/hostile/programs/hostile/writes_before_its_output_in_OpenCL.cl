// id: A18
// task: twice_opencl
// expect: incorrect runtime_error
// why: writes one element before the start of its output

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
    if (i == 0) y[-1] = 7.0f;
}
