"""From per-round times to a ratio with an interval. Pure: the bootstrap's seed is an argument.

The unit is the round: both sides run in it, so that what disturbs the machine disturbs both. A round's
statistic is the log of baseline time over candidate time, positive when the candidate is faster; a case's is
the median over rounds; a kernel's is the mean over cases, that is the geometric mean of ratios. The interval
resamples rounds, all cases of one round together, because a round is what is independent.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from kfd.base.work import Comparison, Speedup

__all__ = [
    "PROCESS_NOISE",
    "Estimate",
    "estimate",
    "log_ratios",
    "median",
    "narrow_enough",
    "speedup",
]

PROCESS_NOISE = 0.015
"""Half-width (log units, 95 %) of what differs from one process to the next and stays the same within it: where
pages and code came to lie, which neighbours the machine had. Rounds of one run cannot show it, so that an interval
from them alone is too narrow to compare two runs by (``benchmarks/aa.py`` measures both)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean of per-case medians, with its percentile bootstrap interval; natural logarithms."""

    value: float
    low: float
    high: float
    rounds: int

    @property
    def half_width(self) -> float:
        """The wider side of the interval."""
        return max(self.value - self.low, self.high - self.value)


def median(values: Sequence[float]) -> float:
    """Median; the mean of the two middle values for an even count. Raises ValueError when empty."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values, no median")
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def log_ratios(candidate_ns: Sequence[int], baseline_ns: Sequence[int]) -> tuple[float, ...]:
    """Log of baseline over candidate, round by round.

    Raises ValueError when the sides differ in length or a time is not positive: a failed measurement must
    never become a number.
    """
    if len(candidate_ns) != len(baseline_ns):
        raise ValueError(f"{len(candidate_ns)} candidate rounds against {len(baseline_ns)} baseline rounds")
    if any(time <= 0 for time in (*candidate_ns, *baseline_ns)):
        raise ValueError("times must be positive")
    return tuple(math.log(b / c) for c, b in zip(candidate_ns, baseline_ns, strict=True))


def estimate(
    cases: Sequence[Sequence[float]], *, confidence: float = 0.95, seed: int = 0, resamples: int = 1000
) -> Estimate:
    """Estimate over cases, each a sequence of per-round log ratios.

    Cases of equal length are resampled jointly, others each on its own. Raises ValueError when there is no
    case, a case has no round, or a value is not finite.
    """
    if not cases or not all(cases):
        raise ValueError("an estimate needs at least one case and one round in each")
    if not all(math.isfinite(value) for case in cases for value in case):
        raise ValueError("log ratios must be finite")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence lies between 0 and 1: {confidence}")
    value = sum(map(median, cases)) / len(cases)
    rounds = min(map(len, cases))
    joint = all(len(case) == rounds for case in cases)
    dice = random.Random(seed)
    means: list[float] = []
    for _ in range(resamples):
        picked = dice.choices(range(rounds), k=rounds) if joint else []
        total = 0.0
        for case in cases:
            total += median([case[index] for index in picked] if joint else dice.choices(case, k=len(case)))
        means.append(total / len(cases))
    means.sort()
    tail = (1.0 - confidence) / 2.0
    low = means[max(0, math.floor(tail * resamples))]
    high = means[min(resamples - 1, math.ceil((1.0 - tail) * resamples) - 1)]
    # With few rounds the percentiles may miss the value itself; an interval holds its estimate.
    return Estimate(value=value, low=min(low, value), high=max(high, value), rounds=rounds)


def narrow_enough(cases: Sequence[Sequence[float]], target_half_width: float, *, confidence: float, seed: int) -> bool:
    """Whether measuring can stop: both sides of the interval are within the target (log units)."""
    return estimate(cases, confidence=confidence, seed=seed, resamples=200).half_width <= target_half_width


def speedup(comparisons: Sequence[Comparison], *, confidence: float = 0.95, seed: int = 0) -> Speedup:
    """Speed-up over one baseline from its comparisons, one for each case.

    The interval is that of the rounds together with ``PROCESS_NOISE``, as independent errors add.

    Raises ValueError when the comparisons are empty or of several baselines.
    """
    baselines = {comparison.baseline for comparison in comparisons}
    if len(baselines) != 1:
        raise ValueError(f"comparisons of exactly one baseline are needed, not of {sorted(baselines)}")
    ratios = {one.case: log_ratios(one.candidate_ns, one.baseline_ns) for one in comparisons}
    whole = estimate(list(ratios.values()), confidence=confidence, seed=seed)
    below, above = (math.hypot(side, PROCESS_NOISE) for side in (whole.value - whole.low, whole.high - whole.value))
    worst_case, worst = min(((case, median(values)) for case, values in ratios.items()), key=lambda pair: pair[1])
    return Speedup(
        baseline=baselines.pop(),
        value=math.exp(whole.value),
        low=math.exp(whole.value - below),
        high=math.exp(whole.value + above),
        rounds=whole.rounds,
        worst_case=worst_case,
        worst_value=math.exp(worst),
    )
