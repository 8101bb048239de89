"""Jobs, leases, slots and workers: who may do what, and for how long."""
