kernel void scan(global const int *x, global int *y, int n)
{
    const int i = get_global_id(0);
    const int v = i < n ? x[i] : 0;
    const int s = sub_group_scan_inclusive_add(v);
    if (i < n) y[i] = s;
}
