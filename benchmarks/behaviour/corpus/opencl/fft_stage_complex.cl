kernel void fft_stage(global const float2 *x, global float2 *y, int n, int p)
{
    const int i = get_global_id(0), t = n / 2;
    const int k = i & (p - 1);
    const float2 u = x[i], w = x[i + t];
    float c;
    const float s = sincos(-M_PI_F * (float)k / (float)p, &c);
    const float2 v = (float2)(w.x * c - w.y * s, w.x * s + w.y * c);
    const int j = ((i - k) << 1) + k;
    y[j] = u + v;
    y[j + p] = u - v;
}
