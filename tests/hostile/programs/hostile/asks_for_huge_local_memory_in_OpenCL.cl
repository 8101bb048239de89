// id: X
// task: twice_opencl
// expect: compile_error runtime_error
// why: a gigabyte of local memory

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n, local(1073741824))
kernel void solve(global const float *x, global float *y, long n, local float *part)
{
    long i = get_global_id(0);
    part[get_local_id(0)] = i < n ? x[i] : 0.0f;
    if (i < n) y[i] = 2.0f * part[get_local_id(0)];
}
