"""The pure core: events in, commands out. No clock, no randomness, no I/O, no logging."""
