kernel void conv3(global const float *x, constant float *g, global float *y, int n)
{
    const int i = get_global_id(0) * 2;
    if (i + 3 >= n) return;
    const float d0 = x[i], d1 = x[i + 1], d2 = x[i + 2], d3 = x[i + 3];
    const float m1 = (d0 - d2) * g[0];
    const float m2 = (d1 + d2) * 0.5f * (g[0] + g[1] + g[2]);
    const float m3 = (d2 - d1) * 0.5f * (g[0] - g[1] + g[2]);
    const float m4 = (d1 - d3) * g[2];
    y[i] = m1 + m2 + m3;
    y[i + 1] = m2 - m3 - m4;
}
