typedef float8 lanes;
#define LOAD(p, i) vload8((i), (p))
inline lanes gelu(lanes v) { return 0.5f * v * (1.0f + erf(v * 0.70710678f)); }
kernel void bias_gelu(global const float *x, global const float *bias, global const float *gate, global float *y,
                      int cols8)
{
    const int i = get_global_id(0);
    const lanes v = LOAD(x, i) + LOAD(bias, i % cols8);
    vstore8(gelu(v) * LOAD(gate, i), i, y);
}
