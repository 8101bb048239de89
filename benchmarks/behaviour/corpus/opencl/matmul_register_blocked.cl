#define TS 32
#define WPT 4
kernel void matmul(global const float *a, global const float *b, global float *c, int n, int k)
{
    local float sa[TS][TS + 1];
    local float sb[TS][TS + 1];
    const int lx = get_local_id(0), ly = get_local_id(1), r0 = get_group_id(1) * TS, c0 = get_group_id(0) * TS;
    float acc[WPT][WPT];
    for (int i = 0; i < WPT; ++i)
        for (int j = 0; j < WPT; ++j) acc[i][j] = 0.0f;
    for (int t = 0; t < k; t += TS) {
        for (int i = 0; i < WPT; ++i)
            for (int j = 0; j < WPT; ++j) {
                const int r = ly * WPT + i, q = lx * WPT + j;
                sa[r][q] = a[(r0 + r) * k + t + q];
                sb[r][q] = b[(t + r) * n + c0 + q];
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int l = 0; l < TS; ++l)
            for (int i = 0; i < WPT; ++i)
                for (int j = 0; j < WPT; ++j) acc[i][j] += sa[ly * WPT + i][l] * sb[l][lx * WPT + j];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < WPT; ++i)
        for (int j = 0; j < WPT; ++j) c[(r0 + ly * WPT + i) * n + c0 + lx * WPT + j] = acc[i][j];
}
