kernel void matmul(global const float *a, global const float *b, global float *c, int m, int n, int k)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= m || j >= n) return;
    float acc = 0;
    for (int l = 0; l < k; ++l) acc += a[i * k + l] * b[l * n + j];
    c[i * n + j] = acc;
}
