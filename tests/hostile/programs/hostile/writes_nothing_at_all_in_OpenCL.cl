// id: A4
// task: twice_opencl
// expect: incorrect
// says: never written
// why: starts, and writes nothing

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (n < 0) y[i] = x[i];
}
