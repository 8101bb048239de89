#define R 2
#define G 64
kernel void stencil(global const float *x, constant float *w, global float *y, int n)
{
    __local float s[G + 2 * R];
    const int i = get_global_id(0), l = get_local_id(0);
    s[l + R] = i < n ? x[i] : 0.0f;
    if (l < R) {
        s[l] = i >= R ? x[i - R] : 0.0f;
        s[l + R + G] = i + G < n ? x[i + G] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float acc = 0.0f;
    for (int o = 0; o <= 2 * R; ++o) acc += w[o] * s[l + o];
    if (i < n) y[i] = acc;
}
