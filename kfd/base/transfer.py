"""Sizes that both ends of a transfer keep."""

from typing import Final

__all__ = ["CHUNK", "MAX_BLOB"]

CHUNK: Final = 256 << 10
"""Bytes of one message of a transfer: larger ones delay the control calls beside them."""

MAX_BLOB: Final = 256 << 20
"""Bytes of the largest blob."""
