#define TK 32
kernel void matvec(global const float *a, global const float *x, global float *y, int rows, int cols)
{
    local float buffer[2][TK];
    const int row = get_global_id(0);
    float acc = 0.0f;
    int now = 0;
    event_t e = async_work_group_copy(buffer[0], x, TK, 0);
    for (int j = 0; j < cols; j += TK) {
        wait_group_events(1, &e);
        if (j + TK < cols) e = async_work_group_copy(buffer[now ^ 1], x + j + TK, TK, 0);
        if (row < rows)
            for (int l = 0; l < TK; ++l) acc += a[row * cols + j + l] * buffer[now][l];
        barrier(CLK_LOCAL_MEM_FENCE);
        now ^= 1;
    }
    if (row < rows) y[row] = acc;
}
