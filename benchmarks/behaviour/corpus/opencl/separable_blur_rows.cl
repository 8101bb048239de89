kernel void blur_rows(global const float *x, constant float *w, global float *t, int cols, int r)
{
    const int j = get_global_id(0), i = get_global_id(1);
    float acc = 0.0f;
    for (int o = -r; o <= r; ++o) acc += w[o + r] * x[i * cols + clamp(j + o, 0, cols - 1)];
    t[i * cols + j] = acc;
}
kernel void blur_columns(global const float *t, constant float *w, global float *y, int rows, int cols, int r)
{
    const int j = get_global_id(0), i = get_global_id(1);
    float acc = 0.0f;
    for (int o = -r; o <= r; ++o) acc += w[o + r] * t[clamp(i + o, 0, rows - 1) * cols + j];
    y[i * cols + j] = acc;
}
