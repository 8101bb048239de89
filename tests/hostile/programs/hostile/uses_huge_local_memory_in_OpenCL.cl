// id: X
// task: twice_opencl
// expect: compile_error load_error runtime_error
// why: a gigabyte of local memory, declared in the kernel

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    local float part[1 << 28];
    part[get_local_id(0) << 20] = i < n ? x[i] : 0.0f;
    if (i < n) y[i] = 2.0f * part[get_local_id(0) << 20];
}
