extern "C" __global__ void row_sum(const float *x, float *out, int cols) {
    float v = 0.f;
    for (int j = threadIdx.x; j < cols; j += 32) v += x[blockIdx.x * cols + j];
#pragma unroll
    for (int o = 16; o > 0; o /= 2) {
        float w;
        asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(w) : "f"(v), "r"(o));
        v += w;
    }
    if (threadIdx.x == 0) out[blockIdx.x] = v;
}
