kernel void rope(global float2 *x, global const float2 *cs, int half_dim)
{
    const int i = get_global_id(0), t = get_global_id(1);
    const float2 v = x[t * half_dim + i], w = cs[t * half_dim + i];
    x[t * half_dim + i] = (float2)(v.x * w.x - v.y * w.y, v.x * w.y + v.y * w.x);
}
