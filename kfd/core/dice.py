"""Stateless randomness: a hash of (seed, purpose, ordinal).

Nothing to persist and independent of order: the same question gets the same answer after a restart, in a
replay, and whichever other questions were asked in between.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Dice"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dice:
    """Dice of one campaign."""

    seed: int

    def roll(self, purpose: str, ordinal: int) -> float:
        """A number in [0, 1), uniform with 53 bits."""
        data = f"{self.seed}\0{purpose}\0{ordinal}".encode()
        (number,) = struct.unpack_from(">Q", hashlib.sha256(data).digest())
        return float(number >> 11) / (1 << 53)

    def pick(self, options: Sequence[T], weights: Sequence[float], purpose: str, ordinal: int) -> T:
        """One option with probability proportional to its weight.

        Raises ValueError when nothing can be picked (no option, or no positive weight).
        """
        total = sum(weights)
        if not options or len(options) != len(weights) or not total > 0:
            raise ValueError("nothing to pick from: options and positive weights are needed")
        point = self.roll(purpose, ordinal) * total
        for option, weight in zip(options, weights, strict=True):
            point -= weight
            if point < 0 and weight > 0:
                return option
        return next(option for option, weight in zip(reversed(options), reversed(weights), strict=True) if weight > 0)
