"""Content addresses: SHA-256 with size, so that the length is known and checked before a transfer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

__all__ = ["Digest", "canonical_json", "digest_of", "digest_of_json"]


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """Name of some bytes: lower-case hex SHA-256 and the size in bytes."""

    hash: str
    size: int

    def __post_init__(self) -> None:
        if len(self.hash) != 64 or not set(self.hash) <= set("0123456789abcdef"):
            raise ValueError(f"not a lower-case SHA-256 in hex: {self.hash[:80]!r}")
        if self.size < 0:
            raise ValueError(f"a size cannot be negative: {self.size}")

    @property
    def short(self) -> str:
        """First twelve hex digits, for people and for file names."""
        return self.hash[:12]

    def __str__(self) -> str:
        return f"{self.hash}/{self.size}"

    @classmethod
    def parse(cls, text: str) -> Digest:
        """Read what ``str`` wrote. Raises ValueError."""
        hash_, _, size = text.partition("/")
        return cls(hash_, int(size))


def digest_of(data: bytes) -> Digest:
    """Digest of bytes."""
    return Digest(hashlib.sha256(data).hexdigest(), len(data))


def canonical_json(value: object) -> bytes:
    """JSON with sorted keys and no spaces: equal values give equal bytes. NaN and infinities are refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest_of_json(value: object) -> Digest:
    """Digest of the canonical JSON form of a value."""
    return digest_of(canonical_json(value))
