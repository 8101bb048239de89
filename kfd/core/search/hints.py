"""Hints in words: at most three directions that transitions speak for and that lead to cells which hold nothing yet.

A direction's strength is its trend over all cells, and half of the component of the combined gradient where the cell
has moves of its own along that axis. A step to an occupied cell is not hinted at: what stands there is known, and is a
parent itself when it is good. A hint says what a step means; it is advice to a model, never a demand, and none is given
where transitions have not spoken (the release demands random optimisations of every prompt).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from kfd.core.search.archive import LEVELS, Cell
from kfd.core.search.gradient import Gradient
from kfd.core.search.transitions import Direction

__all__ = ["MAX_HINTS", "Hint", "HintPolicy", "hint_text", "hints_at"]

MAX_HINTS = 3

_OWN = 0.5
"""Weight of the cell's own gradient beside the trend."""

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

    threshold: float = 0.0
    """Strength that a direction must exceed."""
    min_moves: int = 3
    """Transitions of the cell along the axis before its own gradient counts."""
    limit: int = 1
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


def hints_at(
    cell: Cell, gradient: Gradient, policy: HintPolicy, *, trends: Mapping[Direction, float], occupied: Container[Cell]
) -> tuple[Hint, ...]:
    """The strongest directions at a cell, strongest first, at most one an axis.

    ``gradient``: at the cell; ``trends``: over all cells, of the directions that were taken. Nothing points off the
    grid or to an occupied cell.
    """
    found: list[Hint] = []
    for axis in range(len(cell)):
        speaks = gradient.moves[axis] >= policy.min_moves
        ways = [
            (axis, step)
            for step in (1, -1)
            if (speaks or (axis, step) in trends) and _is_free(cell, axis, step, occupied)
        ]
        own = _OWN * gradient.combined[axis] if speaks else 0.0
        strengths = [(trends.get(way, 0.0) + own * way[1], way) for way in ways]
        strength, way = max(strengths, default=(0.0, (axis, 0)))
        if ways and strength > policy.threshold:
            found.append(_hint(cell, way, strength))
    found.sort(key=lambda hint: (-hint.strength, hint.direction))
    return tuple(found[: policy.limit])


def _is_free(cell: Cell, axis: int, step: int, occupied: Container[Cell]) -> bool:
    level = cell[axis] + step
    return 0 <= level < LEVELS and (*cell[:axis], level, *cell[axis + 1 :]) not in occupied


def _hint(cell: Cell, direction: Direction, strength: float) -> Hint:
    return Hint(direction=direction, strength=strength, text=hint_text(cell, direction))
