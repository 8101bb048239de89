kernel void swiglu(global const float *x, global const float *gate, global float *y, int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    const float g = gate[i];
    y[i] = x[i] * (g / (1.0f + exp(-g)));
}
