#define STAGE(dst, src) dst[get_local_id(0)] = src[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE)
float4 wide(global const float *p, int i) { return vload4(i, p); }
float lanes(float v) { return sub_group_reduce_add(v); }
void bump(volatile global int *p) { atomic_add(p, 1); }
kernel void scale(global const float *x, global float *y, float f, int n)
{
    const int i = get_global_id(0);
    if (i < n) y[i] = f * x[i];
}
