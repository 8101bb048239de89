// id: D11
// task: twice_opencl
// expect: resource_limit timeout runtime_error
// why: answers right and prints for ever

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
    for (long k = 0; k < 1000000000; ++k) printf("%s %d\n", "a long line of nothing at all, again and again and again and again", (int)k);
}
