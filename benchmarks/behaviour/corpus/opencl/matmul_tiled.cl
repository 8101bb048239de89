#define T 16
kernel void matmul(global const float *a, global const float *b, global float *c, int m, int n, int k)
{
    local float as[T][T], bs[T][T];
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int col = get_group_id(0) * T + lx, row = get_group_id(1) * T + ly;
    float acc = 0.0f;
    for (int t = 0; t < k; t += T) {
        as[ly][lx] = row < m && t + lx < k ? a[row * k + t + lx] : 0.0f;
        bs[ly][lx] = col < n && t + ly < k ? b[(t + ly) * n + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int l = 0; l < T; ++l) acc = mad(as[ly][l], bs[l][lx], acc);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && col < n) c[row * n + col] = acc;
}
