kernel void matmul(global const float *a, global const float4 *b, global float4 *c, int n4, int k)
{
    const int col = get_global_id(0), row = get_global_id(1) * 4;
    float4 acc[4] = {(float4)(0.0f), (float4)(0.0f), (float4)(0.0f), (float4)(0.0f)};
    for (int l = 0; l < k; ++l) {
        const float4 v = b[l * n4 + col];
        for (int i = 0; i < 4; ++i) acc[i] = fma((float4)(a[(row + i) * k + l]), v, acc[i]);
    }
    for (int i = 0; i < 4; ++i) c[(row + i) * n4 + col] = acc[i];
}
