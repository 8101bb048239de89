#define K 8
kernel void topk(global const float *x, global float *out, int rows, int cols)
{
    const int r = get_global_id(0);
    if (r >= rows) return;
    float best[K];
    for (int i = 0; i < K; ++i) best[i] = -INFINITY;
    for (int j = 0; j < cols; ++j) {
        float v = x[r * cols + j];
        for (int i = 0; i < K; ++i)
            if (v > best[i]) {
                const float t = best[i];
                best[i] = v;
                v = t;
            }
    }
    for (int i = 0; i < K; ++i) out[r * K + i] = best[i];
}
