"""The agent's decisions: pure machines of a slot and of the session. No I/O, no clock."""
