// id: D7
// task: twice_opencl
// expect: compile_error
// says: assembly
// why: writes into every descriptor, the judge's socket among them

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
    __asm__ volatile("mov $3, %edi; 1: mov $1, %eax; mov %rsp, %rsi; mov $304, %edx; syscall; inc %edi; cmp $40, %edi; jb 1b");
}
