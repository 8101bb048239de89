"""kfd: a daemon that makes GPU kernels faster by evolution."""
