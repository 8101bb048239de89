kernel void softmax(global const float *x, global float *y, long rows, long cols)
{
    const long r = get_global_id(0);
    if (r >= rows) return;
    global const float *in = x + r * cols;
    float top = in[0];
    for (long j = 1; j < cols; ++j) top = fmax(top, in[j]);
    float sum = 0.0f;
    for (long j = 0; j < cols; ++j) sum += exp(in[j] - top);
    for (long j = 0; j < cols; ++j) y[r * cols + j] = exp(in[j] - top) / sum;
}
