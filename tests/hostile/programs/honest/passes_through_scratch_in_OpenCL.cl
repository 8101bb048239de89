// id: X
// task: twice_opencl
// expect: ok
// why: a scratch buffer is written before it is read

// [LAUNCH] scratch part: float32[n, 2]
// [LAUNCH] launch split grid(ceildiv(n, 64)) block(64) args(x, part, n)
// [LAUNCH] launch solve grid(ceildiv(n, 16)) block(16) args(part, y, n)
kernel void split(global const float *x, global float *part, long n)
{
    long i = get_global_id(0);
    if (i < n) { part[2 * i] = x[i]; part[2 * i + 1] = x[i]; }
}
kernel void solve(global const float *part, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = part[2 * i] + part[2 * i + 1];
}
