#define S 16
extern "C" __global__ void linear_swish(const float *x, const float *w, const float *bias, float *y, int n, int k) {
    __shared__ float xs[S][S + 1], ws[S][S + 1];
    const int row = blockIdx.y * S + threadIdx.y, col = blockIdx.x * S + threadIdx.x;
    float acc = 0.f;
    for (int t = 0; t < k; t += S) {
        xs[threadIdx.y][threadIdx.x] = x[row * k + t + threadIdx.x];
        ws[threadIdx.y][threadIdx.x] = w[(blockIdx.x * S + threadIdx.y) * k + t + threadIdx.x];
        __syncthreads();
        for (int l = 0; l < S; ++l) acc += xs[threadIdx.y][l] * ws[threadIdx.x][l];
        __syncthreads();
    }
    acc += bias[col];
    y[row * n + col] = acc / (1.f + __expf(-acc));
}
