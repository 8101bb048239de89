"""What a profile says, whatever tool made it. Pure."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Bottleneck", "Evidence", "NoProfile", "Parser", "bottleneck_of", "number", "table", "text_of"]

_NEAR_ROOF = 60.0
"""Per cent of a roof from which a kernel is bound by it."""
_IDLE = 25.0
"""Per cent of both roofs below which a kernel waits rather than works."""
_FEW_WARPS = 30.0
_MAX_TEXT = 600


class NoProfile(ValueError):
    """The tool's output holds no measurement; the text says what it says instead."""


class Bottleneck:
    """Names that a profile may give; ``unknown`` when the numbers do not tell."""

    MEMORY = "memory bandwidth"
    COMPUTE = "arithmetic"
    LATENCY = "latency"
    OCCUPANCY = "too few threads in flight"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Facts with their units in their names, one bottleneck, a text for the prompt."""

    facts: tuple[tuple[str, str], ...]
    bottleneck: str
    short_text: str


class Parser(Protocol):
    """One tool's output read."""

    def __call__(self, text: str) -> Evidence:
        """The evidence in a tool's output. Raises NoProfile."""
        ...


def bottleneck_of(*, memory_pct: float, compute_pct: float, occupancy_pct: float) -> str:
    """The roof that a kernel is near to, else why it is near none; negative numbers are unknown.

    The higher of the two utilisations from 60 % on names the roof. Below that a kernel waits: for want of threads when
    fewer than 30 % of the possible warps are there, otherwise for memory or results to arrive.
    """
    if memory_pct < 0 and compute_pct < 0:
        return Bottleneck.UNKNOWN
    if max(memory_pct, compute_pct) >= _NEAR_ROOF:
        return Bottleneck.MEMORY if memory_pct >= compute_pct else Bottleneck.COMPUTE
    if 0 <= occupancy_pct < _FEW_WARPS:
        return Bottleneck.OCCUPANCY
    if max(memory_pct, compute_pct) < _IDLE or occupancy_pct >= 0:
        return Bottleneck.LATENCY
    return Bottleneck.UNKNOWN


def number(text: str) -> float:
    """A number as tools print it (``1,234.5``); -1 when it is none."""
    try:
        value = float(text.strip().replace(",", ""))
    except ValueError:
        return -1.0
    # A NaN or an infinity is no measurement.
    return value if -1e300 < value < 1e300 else -1.0


def table(lines: Iterable[str], delimiter: str = ",") -> list[list[str]]:
    """Cells of lines of separated values, stripped; what is no such line is left out."""
    found: list[list[str]] = []
    for line in lines:
        try:
            found += csv.reader([line.strip("\r\n")], delimiter=delimiter, skipinitialspace=True)
        except csv.Error:
            # A line break or a megabyte within a cell: no tool prints that.
            continue
    return [[cell.strip() for cell in row] for row in found if row]


def text_of(bottleneck: str, parts: list[str]) -> str:
    """The short text: the bottleneck, then the numbers that show it; at most 600 characters."""
    return f"Bound by {bottleneck}: {', '.join(parts)}."[:_MAX_TEXT] if parts else f"Bound by {bottleneck}."
