kernel void bn_add_relu(global const float *x, global const float *res, global const float *mean,
                        global const float *var, global const float *g, global const float *b, global float *y,
                        int channels, int area)
{
    const int i = get_global_id(0);
    const int c = i / area % channels;
    const float s = g[c] * rsqrt(var[c] + 1e-5f);
    y[i] = fmax((x[i] - mean[c]) * s + b[c] + res[i], 0.0f);
}
