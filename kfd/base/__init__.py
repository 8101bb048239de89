"""Values that all three programs share. Standard library only; no I/O, no clock."""
