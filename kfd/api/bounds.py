"""Bounds of what is taken from the wire, and the checks that hold them."""

from __future__ import annotations

import math
from typing import Any, Final, TypeVar

from kfd.base.failure import BadInput

__all__ = ["INT_MAX", "NAME", "PAIRS", "TEXT", "count", "finite", "integer", "known", "text"]

INT_MAX: Final = 1 << 62
"""Largest integer that is taken from the wire: it fits every place that it may end in."""

NAME: Final = 200
"""Characters of a name."""

TEXT: Final = 2_000
"""Characters of a short text: a value, a compiler message."""

PAIRS: Final = 64
"""Entries of a list of pairs, flags or stages."""

_Code = TypeVar("_Code")


def known(table: dict[int, _Code], number: int, what: str) -> _Code:
    """What an enum number stands for. Raises BadInput when we do not know it."""
    code = table.get(number)
    if code is None:
        raise BadInput(f"unknown {what} {number}", mend="Install matching versions on both sides.")
    return code


def integer(value: int, what: str, low: int = 0, high: int = INT_MAX) -> int:
    """An integer in range. Raises BadInput."""
    if not low <= value <= high:
        raise BadInput(f"{what} is {value}, not between {low} and {high}")
    return value


def finite(value: float, what: str) -> float:
    """A finite number. Raises BadInput."""
    if not math.isfinite(value):
        raise BadInput(f"{what} is not a finite number")
    return value


def text(value: str, what: str, limit: int) -> str:
    """A text of at most ``limit`` characters. Raises BadInput."""
    if len(value) > limit:
        raise BadInput(f"{what} has {len(value)} characters, more than {limit}")
    return value


def count(items: Any, what: str, limit: int) -> Any:
    """A list of at most ``limit`` items. Raises BadInput."""
    if len(items) > limit:
        raise BadInput(f"{len(items)} {what}, more than {limit}")
    return items
