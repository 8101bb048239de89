// id: X
// task: twice_opencl
// expect: ok
// why: slow is no fault

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    float v = i < n ? x[i] : 0.0f, w = v;
    for (int k = 0; k < 200; ++k) w = w + v - v;
    if (i < n) y[i] = 2.0f * v;
}
