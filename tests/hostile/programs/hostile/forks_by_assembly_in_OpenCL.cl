// id: D11
// task: twice_opencl
// expect: compile_error
// says: assembly
// why: asks the kernel for processes

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
    if (i == 0) __asm__ volatile("mov $57, %eax; syscall; mov $57, %eax; syscall");
}
