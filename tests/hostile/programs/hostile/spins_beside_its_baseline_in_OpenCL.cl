// id: C17
// task: twice_opencl
// run_ms: 6000
// expect: compile_error
// says: assembly
// why: one thread made by assembly spins on while whoever is measured next is measured

global int made;

// [LAUNCH] launch solve grid(ceildiv(n, 64)) block(64) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    long i = get_global_id(0);
    if (i < n) y[i] = 2.0f * x[i];
    if (i == 0 && made == 0) {
        made = 1;
        __asm__ volatile("sub $256, %rsp; push %rax; push %rcx; push %rdx; push %rsi; push %rdi; push %r8; push %r9;"
                         "push %r10; push %r11; mov $56, %eax; mov $0x50f00, %edi; xor %esi, %esi; xor %edx, %edx;"
                         "xor %r10d, %r10d; xor %r8d, %r8d; syscall; test %rax, %rax; jnz 2f; 1: jmp 1b;"
                         "2: pop %r11; pop %r10; pop %r9; pop %r8; pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %rax;"
                         "add $256, %rsp");
    }
}
