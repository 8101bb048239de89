kernel void relu(global const float *x, global float *y, long n)
{
    const long i = get_global_id(0);
    if (i < n) y[i] = fmax(x[i], 0.0f);
}
