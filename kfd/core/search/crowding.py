"""When one cell holds most of a campaign's correct kernels, the grid tells them apart no more, and people should know.

Pure counts over what the search was told, so that a restored search says the same at the same moment. Points of a sweep
are left out: they are one kernel with other constants and stand in one cell by nature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kfd.core.search.archive import Niche

__all__ = ["Crowd", "crowd"]

LEAST_CORRECT_KERNELS = 40
"""Correct kernels below which an uneven spread is no news."""

MOST_IN_ONE_CELL = 0.8
"""Share of them in one cell beyond which the others hardly count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """A cell that holds most of the correct kernels, as it was when that was first seen."""

    cell: Niche
    inside: int
    correct: int

    @property
    def share(self) -> float:
        """Part of the correct kernels that stand in the cell, 0 to 1."""
        return self.inside / self.correct


def crowd(correct: Mapping[Niche, int]) -> Crowd | None:
    """The cell that holds more than four fifths of at least 40 correct kernels. ``correct``: how many each cell has."""
    total = sum(correct.values())
    if total < LEAST_CORRECT_KERNELS:
        return None
    cell = max(sorted(correct), key=lambda one: correct[one])
    found = Crowd(cell=cell, inside=correct[cell], correct=total)
    return found if found.share > MOST_IN_ONE_CELL else None
