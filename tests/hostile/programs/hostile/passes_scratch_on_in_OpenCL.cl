// id: A4
// task: twice_opencl
// expect: incorrect
// why: counts on a scratch buffer that holds zeros

// [LAUNCH] scratch part: float32[n]
// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, part, n)
kernel void solve(global const float *x, global float *y, global float *part, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i] + part[i];
}
