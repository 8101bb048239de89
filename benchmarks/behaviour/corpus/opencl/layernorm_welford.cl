kernel void layernorm(global const float *x, global float *y, int rows, int cols)
{
    const int r = get_global_id(0);
    if (r >= rows) return;
    float mean = 0.0f, m2 = 0.0f;
    for (int j = 0; j < cols; ++j) {
        const float v = x[r * cols + j], d = v - mean;
        mean += d / (j + 1);
        m2 += d * (v - mean);
    }
    const float rstd = rsqrt(m2 / cols + 1e-5f);
    for (int j = 0; j < cols; ++j) y[r * cols + j] = (x[r * cols + j] - mean) * rstd;
}
