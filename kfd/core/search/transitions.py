"""What a child did: the unit that gradients, credits and plateaus learn from. Failures are transitions too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from kfd.core.search.archive import LEVELS, Cell

__all__ = ["Change", "Direction", "Transition", "change_of"]

Direction = tuple[int, int]
"""(axis, +1 or -1): a step along memory (0), algorithm (1) or parallelism (2)."""


class Change(StrEnum):
    """What became of a child, by what it did to the archive and to fitness (the paper, section on transitions)."""

    IMPROVEMENT = "improvement"
    """It opened a cell or displaced an elite."""
    NEUTRAL = "neutral"
    """Correct, about as good as its parent, not kept."""
    REGRESSION = "regression"
    """Correct and worse than its parent."""
    FAILURE = "failure"
    """No correct kernel: it has no cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One child: parent cell -> child cell (None for a failure), with the change in fitness and why it was made."""

    ordinal: int
    """The child's place in the order of asking."""
    parent: Cell
    child: Cell | None
    delta: float
    """Fitness of the child less that of the parent; a failure counts its ladder value (0 or 0.1) as fitness."""
    change: Change
    operator: str
    hints: tuple[Direction, ...] = ()
    """Directions that the prompt spoke of."""

    def __post_init__(self) -> None:
        for cell in (self.parent, self.child):
            if cell is not None and not all(0 <= level < LEVELS for level in cell):
                raise ValueError(f"no such cell: {cell}; each axis has levels 0 to {LEVELS - 1}")
        if not math.isfinite(self.delta):
            raise ValueError(f"transition {self.ordinal}: the change in fitness must be finite")
        if (self.child is None) != (self.change is Change.FAILURE):
            raise ValueError(f"transition {self.ordinal}: exactly failures have no cell")

    @property
    def signs(self) -> tuple[int, int, int]:
        """Sign of the step along each axis; zeros for a failure."""
        if self.child is None:
            return (0, 0, 0)
        first, second, third = ((b > a) - (b < a) for a, b in zip(self.parent, self.child, strict=True))
        return (first, second, third)


def change_of(*, correct: bool, kept: bool, delta: float, epsilon: float = 0.01) -> Change:
    """Class of a child. ``kept``: it is an elite now. ``epsilon``: fitness differences below it are noise."""
    if not correct:
        return Change.FAILURE
    if kept:
        return Change.IMPROVEMENT
    return Change.REGRESSION if delta < -epsilon else Change.NEUTRAL
