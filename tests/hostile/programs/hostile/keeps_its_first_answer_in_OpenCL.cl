// id: A5
// task: twice_opencl
// expect: incorrect compile_error
// why: counts its calls in program memory and answers the first only

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
global int calls;
global float kept[1 << 16];
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n && calls < 1000) kept[i % 65536] = 2.0f * x[i];
    if (i < n) y[i] = kept[i % 65536];
    if (i == 0) calls = 1000000;
}
