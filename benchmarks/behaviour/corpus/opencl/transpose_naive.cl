kernel void transpose(global const float *x, global float *y, int rows, int cols)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (i < rows && j < cols) y[j * rows + i] = x[i * cols + j];
}
