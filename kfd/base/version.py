"""The versions that peers compare."""

__all__ = ["PROTOCOL_MAX", "PROTOCOL_MIN", "VERSION"]

VERSION = "0.1.0"
"""Version of the distribution; a test holds it equal to pyproject.toml."""

PROTOCOL_MIN = 1
PROTOCOL_MAX = 1
"""Range of the worker protocol this code speaks (worker-protocol, section 6)."""
