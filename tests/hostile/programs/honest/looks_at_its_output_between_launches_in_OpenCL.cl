// id: X
// task: twice_opencl
// expect: ok
// why: the second launch reads what the first wrote

// [LAUNCH] launch copy grid(ceildiv(n, 64)) block(64) args(x, y, n)
// [LAUNCH] launch solve grid(ceildiv(n, 32)) block(32) args(y, n)
kernel void copy(global const float *x, global float *y, long n)
{
    if (get_global_id(0) < n) y[get_global_id(0)] = x[get_global_id(0)];
}
kernel void solve(global float *y, long n)
{
    if (get_global_id(0) < n) y[get_global_id(0)] *= 2.0f;
}
