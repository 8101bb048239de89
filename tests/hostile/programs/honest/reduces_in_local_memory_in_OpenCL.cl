// id: X
// task: softmax_opencl
// expect: ok
// why: barriers, local memory and a tunable

// [TUNE] GROUP in {16, 32}
// [LAUNCH] launch solve grid(rows) block(GROUP) args(x, y, cols, local(4 * GROUP))
float whole(local float *part, float mine, int largest)
{
    part[get_local_id(0)] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    float all = part[0];
    for (int k = 1; k < GROUP; ++k) all = largest ? fmax(all, part[k]) : all + part[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    return all;
}
kernel void solve(global const float *x, global float *y, long cols, local float *part)
{
    global const float *in = x + get_group_id(0) * cols;
    global float *out = y + get_group_id(0) * cols;
    float top = -INFINITY;
    for (long j = get_local_id(0); j < cols; j += GROUP) top = fmax(top, in[j]);
    top = whole(part, top, 1);
    float sum = 0.0f;
    for (long j = get_local_id(0); j < cols; j += GROUP) sum += exp(in[j] - top);
    sum = whole(part, sum, 0);
    for (long j = get_local_id(0); j < cols; j += GROUP) out[j] = exp(in[j] - top) / sum;
}
