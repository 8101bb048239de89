// id: A18
// task: twice_opencl
// expect: incorrect runtime_error
// why: every tail work-item writes, one element past the end and on

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    y[i] = i < n ? 2.0f * x[i] : 7.0f;
    if (i + 1 == n) y[n] = 7.0f;
}
