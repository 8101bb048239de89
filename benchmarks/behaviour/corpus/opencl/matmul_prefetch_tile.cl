#define T 16
kernel void matmul(global const float *a, global const float *b, global float *c, int n)
{
    local float sa[T * T], sb[T * T];
    const int x = get_local_id(0), y = get_local_id(1);
    const int row = get_global_id(1), col = get_global_id(0);
    float acc = 0.0f;
    for (int t = 0; t < n / T; ++t) {
        sa[y * T + x] = a[row * n + t * T + x];
        sb[y * T + x] = b[(t * T + y) * n + col];
        if (t + 1 < n / T) prefetch(b + ((t + 1) * T + y) * n + col, 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int l = 0; l < T; ++l) acc += sa[y * T + l] * sb[l * T + x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + col] = acc;
}
