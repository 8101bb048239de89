#define D 32
#define BC 16
kernel void flash(global const float *q, global const float *k, global const float *v, global float *o, int n)
{
    local float ks[BC * D], vs[BC * D];
    const int row = get_global_id(0);
    float qr[D], acc[D], m = -INFINITY, l = 0.0f;
    for (int d = 0; d < D; ++d) {
        qr[d] = q[row * D + d];
        acc[d] = 0.0f;
    }
    for (int j0 = 0; j0 < n; j0 += BC) {
        for (int i = get_local_id(0); i < BC * D; i += get_local_size(0)) {
            ks[i] = k[j0 * D + i];
            vs[i] = v[j0 * D + i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < BC; ++j) {
            float s = 0.0f;
            for (int d = 0; d < D; ++d) s += qr[d] * ks[j * D + d];
            const float t = fmax(m, s), c = exp(m - t), p = exp(s - t);
            l = l * c + p;
            for (int d = 0; d < D; ++d) acc[d] = acc[d] * c + p * vs[j * D + d];
            m = t;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int d = 0; d < D; ++d) o[row * D + d] = acc[d] / l;
}
