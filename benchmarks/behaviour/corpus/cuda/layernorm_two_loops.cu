extern "C" __global__ void layernorm(const float *x, const float *g, const float *b, float *y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float mean = 0.f, var = 0.f;
    for (int j = 0; j < cols; ++j) mean += x[r * cols + j];
    mean /= cols;
    for (int j = 0; j < cols; ++j) {
        float d = x[r * cols + j] - mean;
        var += d * d;
    }
    float rstd = rsqrtf(var / cols + 1e-5f);
    for (int j = 0; j < cols; ++j) y[r * cols + j] = (x[r * cols + j] - mean) * rstd * g[j] + b[j];
}
