kernel void layernorm(global const float *x, global const float *g, global const float *b, global float *y, int cols)
{
    const int r = get_global_id(0);
    float mean = 0.0f, var = 0.0f;
    for (int j = 0; j < cols; ++j) mean += x[r * cols + j];
    mean /= cols;
    for (int j = 0; j < cols; ++j) var += (x[r * cols + j] - mean) * (x[r * cols + j] - mean);
    const float rstd = rsqrt(var / cols + 1e-5f);
    for (int j = 0; j < cols; ++j) y[r * cols + j] = (x[r * cols + j] - mean) * rstd * g[j] + b[j];
}
