// id: D8
// task: twice_opencl
// expect: compile_error
// says: kfd_takes_no_assembly
// why: makes the word for assembly where no look at the text finds it

#define PASTE(a, b) a##b
// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
    if (i == 0) PASTE(__as, m__) volatile("mov $231, %eax; xor %edi, %edi; syscall");
}
