kernel void relu(global const float *x, global float *y, int n)
{
    const int i = get_global_id(0);
    if (i * 4 + 3 < n) {
        vstore4(fmax(vload4(i, x), 0.0f), i, y);
    } else {
        for (int j = i * 4; j < n; ++j) y[j] = fmax(x[j], 0.0f);
    }
}
