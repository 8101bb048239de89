"""How far a kernel is from moving its data once, as fast as the machine that measured it copies."""

from __future__ import annotations

import math
from statistics import median

from kfd.base.work import RunResult

__all__ = ["roofline_share"]


def roofline_share(result: RunResult) -> float | None:
    """Time of copying what must be moved over the kernel's own time, geometric mean over cases, at most 1.

    None when a timed case has no roof. A kernel's time is the median over its rounds.
    """
    times = {one.case: one.candidate_ns for one in result.comparisons if one.candidate_ns}
    roofs = {one.case: one.copy_ns for one in result.roofs if one.copy_ns > 0}
    if not times or not times.keys() <= roofs.keys():
        return None
    logs = [math.log(roofs[case] / median(taken)) for case, taken in times.items()]
    return min(1.0, math.exp(sum(logs) / len(logs)))
