kernel void transpose(global const float *x, global float *y, int rows, int cols, local float *tile)
{
    const int lx = get_local_id(0), ly = get_local_id(1), t = get_local_size(0);
    int j = get_group_id(0) * t + lx, i = get_group_id(1) * t + ly;
    if (i < rows && j < cols) tile[ly * (t + 1) + lx] = x[i * cols + j];
    barrier(CLK_LOCAL_MEM_FENCE);
    i = get_group_id(0) * t + ly;
    j = get_group_id(1) * t + lx;
    if (i < cols && j < rows) y[i * rows + j] = tile[lx * (t + 1) + ly];
}
