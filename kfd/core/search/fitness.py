"""Fitness: the paper's ladder without its ceiling (DESIGN, section 6)."""

from __future__ import annotations

import math

from kfd.base.work import VerdictCode

__all__ = ["BUILT_BUT_WRONG", "LEAST_CORRECT", "NOT_BUILT", "fitness"]

NOT_BUILT = 0.0
BUILT_BUT_WRONG = 0.1
LEAST_CORRECT = 0.5
"""No correct candidate is below it, whatever its speed, and every failure is."""


def fitness(code: VerdictCode, speedup: float | None, target_speedup: float) -> float | None:
    """Fitness of a verdict.

    ``0`` not built; ``0.1`` built but wrong, crashed or out of time; ``0.5 + 0.5 log2(1 + speedup/target)``
    when correct: 1.0 at the target and increasing without end (the paper, section on fitness, caps it at 1).
    None for ``suspect``: no fitness until it is judged again. Raises ValueError when a correct candidate
    comes without a positive, finite speedup: a missing measurement is not a number.
    """
    if code is VerdictCode.SUSPECT:
        return None
    if code is VerdictCode.COMPILE_ERROR:
        return NOT_BUILT
    if code is not VerdictCode.OK:
        return BUILT_BUT_WRONG
    if speedup is None or not math.isfinite(speedup) or speedup <= 0:
        raise ValueError(f"a correct candidate needs a positive speedup, got {speedup}")
    return LEAST_CORRECT + 0.5 * math.log2(1 + speedup / target_speedup)
