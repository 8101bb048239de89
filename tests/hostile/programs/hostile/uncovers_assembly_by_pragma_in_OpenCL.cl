// id: D8
// task: twice_opencl
// expect: compile_error
// says: assembly
// why: looks for the word as it was before it was covered

#pragma push_macro("__asm__")
#pragma pop_macro("__asm__")
#define PASTE(a, b) a##b
// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
    if (i == 0) PASTE(__as, m__)("mov $231, %eax; xor %edi, %edi; syscall");
}
