"""How long to wait before the next try."""

from __future__ import annotations

from kfd.base.instant import MILLISECOND, SECOND, Span

__all__ = ["backoff"]

_FIRST: Span = 500 * MILLISECOND
_FACTOR = 1.6
_MOST: Span = 10 * SECOND
_LEAST: Span = 20 * MILLISECOND


def backoff(failures: int, dice: float) -> Span:
    """Wait after the n-th failure in a row (1 is the first): 0.5 s x 1.6^n, at most 10 s, with full jitter.

    ``dice`` is a number in [0, 1) from the caller, so that two agents do not come back in step.
    """
    most = min(_MOST, int(_FIRST * _FACTOR ** min(max(failures, 1) - 1, 20)))
    return max(_LEAST, int(most * dice))
