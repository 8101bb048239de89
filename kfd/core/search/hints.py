"""Hints in words: at most three, drawn from a gradient that has evidence.

A hint names a direction of the grid and says what a step along it means. It is advice to a model, never a demand,
and none is given where transitions have not spoken (the release demands random optimisations of every prompt).
"""

from __future__ import annotations

from dataclasses import dataclass

from kfd.core.search.archive import LEVELS, Cell
from kfd.core.search.gradient import Gradient
from kfd.core.search.transitions import Direction

__all__ = ["MAX_HINTS", "Hint", "HintPolicy", "hint_text", "hints_at"]

MAX_HINTS = 3

_UP: tuple[tuple[str, str, str], ...] = (
    (
        "Make memory accesses coalesced or vectorised (aligned groups of four or more).",
        "Stage data in shared or local memory with explicit tiles.",
        "Combine several levels of memory: tiles, register blocks and prefetching.",
    ),
    (
        "Fuse the steps into one pass over the data.",
        "Reformulate the computation (an online or single-pass form).",
        "Look for an algorithm with less work, not only a faster form of this one.",
    ),
    (
        "Let a work-group share work behind barriers.",
        "Use sub-group (warp) shuffles and reductions in place of shared memory.",
        "Spread one result over several groups: atomics or a second pass.",
    ),
)
"""By axis, then by the level that is left."""

_DOWN: tuple[tuple[str, str, str], ...] = (
    (
        "Plain accesses may do better than vectorised ones here.",
        "Try without tiles: the data may fit in registers or caches.",
        "Drop one level of staging; a single level of tiles may suffice.",
    ),
    (
        "Keep the steps apart: fusing costs more than it saves here.",
        "A direct single pass may beat the reformulated computation.",
        "A simpler algorithm may win at these sizes.",
    ),
    (
        "Let threads work independently, without barriers.",
        "Replace sub-group operations by plain work-group code.",
        "Keep each result in one group: no atomics, no second pass.",
    ),
)
"""By axis, then by the level below the one that is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HintPolicy:
    """When a direction is worth words."""

    threshold: float = 0.2
    """Least magnitude of a combined component."""
    min_moves: int = 3
    """Transitions along the axis; exploration alone never becomes a hint below it."""
    limit: int = 0
    """Hints in one prompt, at most 3; 0 switches them off."""

    def __post_init__(self) -> None:
        if not 0 <= self.limit <= MAX_HINTS or self.threshold < 0 or self.min_moves < 0:
            raise ValueError(f"hints: limit is 0 to {MAX_HINTS}, threshold and min_moves are not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One direction with its words."""

    direction: Direction
    strength: float
    text: str


def hint_text(cell: Cell, direction: Direction) -> str:
    """What a step from a cell means, in words. Raises ValueError for a step that leaves the grid."""
    axis, step = direction
    level = cell[axis]
    if not 0 <= level + step < LEVELS:
        raise ValueError(f"a step of {step} on axis {axis} leaves the grid at {cell}")
    return _UP[axis][level] if step > 0 else _DOWN[axis][level - 1]


def hints_at(cell: Cell, gradient: Gradient, policy: HintPolicy) -> tuple[Hint, ...]:
    """The strongest directions at a cell, strongest first; nothing points off the grid."""
    found: list[Hint] = []
    for axis, value in enumerate(gradient.combined):
        if abs(value) < policy.threshold or gradient.moves[axis] < policy.min_moves or value == 0:
            continue
        level = cell[axis]
        if value > 0 and level < LEVELS - 1:
            found.append(_hint(cell, (axis, 1), value))
        elif value < 0 and level > 0:
            found.append(_hint(cell, (axis, -1), -value))
    found.sort(key=lambda hint: (-hint.strength, hint.direction))
    return tuple(found[: policy.limit])


def _hint(cell: Cell, direction: Direction, strength: float) -> Hint:
    return Hint(direction=direction, strength=strength, text=hint_text(cell, direction))
