#define N 256
kernel void scan(global const float *x, global float *y)
{
    local float s[2][N];
    const int l = get_local_id(0), g = get_global_id(0);
    int in = 0;
    s[0][l] = x[g];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 1; d < N; d <<= 1) {
        s[in ^ 1][l] = s[in][l] + (l >= d ? s[in][l - d] : 0.0f);
        in ^= 1;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    y[g] = s[in][l];
}
