"""The agent: dials the daemon, holds leases, and has jobs done in boxes by its launcher."""
