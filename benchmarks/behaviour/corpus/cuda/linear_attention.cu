#define D 32
extern "C" __global__ void linear_attention(const float *q, const float *k, const float *v, float *o, int n) {
    __shared__ float state[D][D], kr[D], vr[D], qr[D];
    int i = threadIdx.x / D, j = threadIdx.x % D;
    state[i][j] = 0.f;
    for (int t = 0; t < n; ++t) {
        if (i == 0) {
            kr[j] = k[t * D + j];
            vr[j] = v[t * D + j];
            qr[j] = q[t * D + j];
        }
        __syncthreads();
        state[i][j] += kr[i] * vr[j];
        __syncthreads();
        if (i == 0) {
            float s = 0.f;
            for (int d = 0; d < D; ++d) s += qr[d] * state[d][j];
            o[t * D + j] = s;
        }
        __syncthreads();
    }
}
