#define T 8
kernel void linear_relu(global const float *x, global const float *w, global const float *bias, global float *y,
                        int n, int k)
{
    local float xs[T][T], ws[T][T];
    const int lx = get_local_id(0), ly = get_local_id(1), col = get_global_id(0), row = get_global_id(1);
    float acc = bias[col];
    for (int t = 0; t < k; t += T) {
        xs[ly][lx] = x[row * k + t + lx];
        ws[ly][lx] = w[(t + ly) * n + col];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int l = 0; l < T; ++l) acc += xs[ly][l] * ws[l][lx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    y[row * n + col] = fmax(acc, 0.0f);
}
