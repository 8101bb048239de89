"""How jobs are carried out: the launcher or the simulator, wrapped in small decorators."""
