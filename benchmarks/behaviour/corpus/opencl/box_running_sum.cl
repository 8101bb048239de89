kernel void box_rows(global const float *x, global float *y, int rows, int cols, int r)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    float run = 0.0f;
    for (int j = 0; j < min(r, cols); ++j) run += x[row * cols + j];
    for (int j = 0; j < cols; ++j) {
        if (j + r < cols) run += x[row * cols + j + r];
        if (j > r) run -= x[row * cols + j - r - 1];
        y[row * cols + j] = run / (2 * r + 1);
    }
}
