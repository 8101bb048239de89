"""Paired comparisons: ratio of medians with a bootstrap interval over seeds."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev

__all__ = ["Ratio", "difference_of_shares", "ratio_of_medians"]

RESAMPLES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio of medians with its 95 % interval; ``n`` pairs."""

    value: float
    low: float
    high: float
    n: int


def ratio_of_medians(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """``median(ours) / median(theirs)`` over paired seeds; pairs are resampled together (percentile bootstrap).

    Runs that did not arrive count as the budget, which makes the losing side look better than it is. Raises ValueError
    for lists of different length or fewer than two pairs.
    """
    count = len(ours)
    if count != len(theirs) or count < 2:
        raise ValueError("paired lists of at least two runs are needed")
    rng = random.Random(f"bootstrap:{count}")
    ratios = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(range(count), k=count)
        ratios.append(median([ours[i] for i in drawn]) / median([theirs[i] for i in drawn]))
    ratios.sort()
    low, high = ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES)]
    return Ratio(value=median(ours) / median(theirs), low=low, high=high, n=count)


def difference_of_shares(ours: Sequence[bool], theirs: Sequence[bool]) -> tuple[float, float, float]:
    """Share of ours that hold less that of theirs, with its 95 % interval (low, high) over pairs, normal approximation.

    Raises ValueError for lists of different length or fewer than two pairs.
    """
    if len(ours) != len(theirs) or len(ours) < 2:
        raise ValueError("paired lists of at least two runs are needed")
    differences = [float(a) - float(b) for a, b in zip(ours, theirs, strict=True)]
    middle = mean(differences)
    half = 1.96 * stdev(differences) / math.sqrt(len(differences))
    return middle, middle - half, middle + half
