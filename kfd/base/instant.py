"""Time as integer nanoseconds. There is no clock here: whoever needs one passes its reading in."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["MICROSECOND", "MILLISECOND", "MINUTE", "SECOND", "Instant", "Span", "seconds_text"]

Instant: TypeAlias = int
"""A reading of one process's monotonic clock, in nanoseconds. Readings of two processes never meet."""

Span: TypeAlias = int
"""A length of time in nanoseconds."""

MICROSECOND: Span = 1_000
MILLISECOND: Span = 1_000_000
SECOND: Span = 1_000_000_000
MINUTE: Span = 60 * SECOND


def seconds_text(span_ns: Span) -> str:
    """A span for people: ``1.5 s``, ``3 m 20 s``, ``2 h 10 m``."""
    if span_ns < 0:
        return f"-{seconds_text(-span_ns)}"
    seconds = span_ns / SECOND
    if seconds < 1:
        return f"{span_ns / MILLISECOND:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
