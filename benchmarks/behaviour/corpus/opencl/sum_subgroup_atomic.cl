kernel void total(global const int *x, global atomic_int *out, int n)
{
    int v = 0;
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) v += x[i];
    v = sub_group_reduce_add(v);
    if (get_sub_group_local_id() == 0) atomic_fetch_add_explicit(out, v, memory_order_relaxed, memory_scope_device);
}
