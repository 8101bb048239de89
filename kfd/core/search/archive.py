"""The MAP-Elites archive: one elite a cell, kept until a newcomer has beaten it side by side.

Within noise the incumbent stays, unless the newcomer is at least a fifth shorter and not slower beyond noise, which a
measurement side by side has to say too. Such steps may each lose what noise hides, so they never add up to more than
that for the champion: none is taken that leaves its speedup below the highest lower bound that a champion ever had.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from kfd.base.digest import Digest
from kfd.base.ids import CandidateId

__all__ = [
    "LEVELS",
    "AddResult",
    "AddStatus",
    "Archive",
    "Cell",
    "Elite",
    "Niche",
    "clearly_better",
    "clearly_shorter",
    "fittest",
]

LEVELS = 4
"""Levels on each of the three axes: memory, algorithm, parallelism (the paper's 4 x 4 x 4 grid)."""

SHORTER = 0.8
"""Length over the incumbent's from which on a newcomer is worth having though it is no faster."""

Cell: TypeAlias = tuple[int, int, int]
Niche: TypeAlias = tuple[int, ...]
"""A cell, and the levels of further axes where some are configured: what one elite owns."""


class AddStatus(IntEnum):
    """What adding did; truthy when the archive changed."""

    NOT_ADDED = 0
    IMPROVED = 1
    NEW = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Elite:
    """A correct candidate with its place and its speedup over the campaign's baseline."""

    candidate: CandidateId
    ordinal: int
    generation: int
    cell: Cell
    fitness: float
    speedup: float
    low: float
    high: float
    source: str
    """Hex SHA-256 of the kernel text."""
    artifact: Digest
    """What was measured, so that it can be measured again."""
    length: int = 0
    """Characters of the kernel text; 0 where it is not known, which is never shorter."""
    extra: tuple[int, ...] = ()
    """Levels of further axes (``axes.extra_levels``)."""

    def __post_init__(self) -> None:
        if not all(0 <= level < LEVELS for level in self.cell):
            raise ValueError(f"no such cell: {self.cell}; each axis has levels 0 to {LEVELS - 1}")
        if not all(0 <= level < LEVELS for level in self.extra):
            raise ValueError(f"no such niche: {self.niche}; each axis has levels 0 to {LEVELS - 1}")
        if not all(math.isfinite(x) for x in (self.fitness, self.speedup, self.low, self.high)):
            raise ValueError(f"{self.candidate}: fitness, speedup and interval must be finite")
        if not 0 < self.low <= self.speedup <= self.high:
            raise ValueError(f"{self.candidate}: the interval must enclose the speedup")

    @property
    def niche(self) -> Niche:
        """What it competes for."""
        return (*self.cell, *self.extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """What became of an entry. ``improvement`` is the gain in fitness over what the cell held (0 if nothing)."""

    status: AddStatus
    improvement: float
    replaced: CandidateId | None


def fittest(elites: Iterable[Elite]) -> dict[Cell, float]:
    """The highest fitness in each cell that is held, whatever the niches within it."""
    found: dict[Cell, float] = {}
    for elite in elites:
        found[elite.cell] = max(elite.fitness, found.get(elite.cell, elite.fitness))
    return found


def clearly_better(new: Elite, old: Elite) -> bool:
    """Whether the newcomer's gain exceeds the noise of both measurements.

    The log ratio of two independent measurements has the half-width sqrt(h1^2 + h2^2).
    """
    gain = math.log(new.speedup / old.speedup)
    new_half = math.log(new.high / new.low) / 2
    old_half = math.log(old.high / old.low) / 2
    return gain > 0 and gain > math.hypot(new_half, old_half)


def clearly_shorter(new: Elite, old: Elite) -> bool:
    """Whether the newcomer's text is at least a fifth shorter."""
    return 0 < new.length <= SHORTER * old.length


class Archive:
    """At most one elite a cell, and among them the champion: the campaign's best. Adding is atomic.

    The champion is not the elite with the highest number: numbers of different jobs were taken under different
    conditions. It is the first elite, and after that whoever has beaten it side by side.
    """

    def __init__(
        self, elites: Iterable[Elite] = (), champion: CandidateId | None = None, champions: Iterable[Elite] = ()
    ) -> None:
        """``champions``: all that there were, in any order; what no shorter kernel may fall behind."""
        self._cells: dict[Niche, Elite] = {}
        for elite in elites:
            if elite.niche in self._cells:
                raise ValueError(f"two elites for cell {elite.niche}")
            self._cells[elite.niche] = elite
        self._champion = next((elite for elite in self._cells.values() if elite.candidate == champion), None)
        if self._champion is None:
            self._champion = self._fastest()
        held = () if self._champion is None else (self._champion,)
        self._floor = max((one.low for one in (*champions, *held)), default=0.0)

    def rival(self, new: Elite, lost_to: CandidateId | None = None) -> Elite | None:
        """Whom a newcomer must beat side by side: the champion, or its cell's elite, when it seems clearly faster.

        Else its cell's elite, when it is shorter and seems no slower. One that it has lost to is no rival any more.
        None: it displaces nobody.
        """
        old = self._cells.get(new.niche)
        for one in (self._champion, old):
            if one is not None and one.candidate != lost_to and clearly_better(new, one):
                return one
        is_open = old is not None and old.candidate != lost_to
        return old if old is not None and is_open and self.may_shorten(new, old.candidate) else None

    def may_shorten(self, new: Elite, old: CandidateId | None) -> bool:
        """Whether a newcomer that is measured to be no slower than its cell's elite ``old`` may take its place.

        It must be a fifth shorter and its speedup over the baseline not clearly worse; in the champion's place it must
        also not be below the highest lower bound that any champion had, so that fifty small losses are not added up.
        """
        held = self._cells.get(new.niche)
        if held is None or held.candidate != old or not clearly_shorter(new, held) or clearly_better(held, new):
            return False
        is_champion = self._champion is not None and self._champion.candidate == old
        return not is_champion or new.speedup >= self._floor

    def add(self, new: Elite, *, beaten: CandidateId | None = None) -> AddResult:
        """Take a newcomer in if its cell is empty or it has beaten the cell's elite (or the champion) side by side.

        ``beaten``: whom a measurement side by side said it is faster than, or that it may shorten.
        """
        old, champion = self._cells.get(new.niche), self._champion
        conquers = champion is None or beaten == champion.candidate
        if old is not None and not conquers and beaten != old.candidate:
            return AddResult(status=AddStatus.NOT_ADDED, improvement=0.0, replaced=None)
        self._cells[new.niche] = new
        if conquers:
            self._champion = new
            self._floor = max(self._floor, new.low)
        if old is None:
            return AddResult(status=AddStatus.NEW, improvement=new.fitness, replaced=None)
        return AddResult(status=AddStatus.IMPROVED, improvement=new.fitness - old.fitness, replaced=old.candidate)

    def remove(self, candidate: CandidateId) -> None:
        """Take an elite out (it did not stand up to a second look)."""
        self._cells = {cell: elite for cell, elite in self._cells.items() if elite.candidate != candidate}
        if self._champion is not None and self._champion.candidate == candidate:
            self._champion = self._fastest()

    def best(self) -> Elite | None:
        """The champion."""
        return self._champion

    def _fastest(self) -> Elite | None:
        return max(self._cells.values(), key=lambda elite: (elite.fitness, -elite.ordinal), default=None)

    def __iter__(self) -> Iterator[Elite]:
        """Elites in the order of their cells, so that choices do not depend on arrival."""
        return iter([self._cells[cell] for cell in sorted(self._cells)])

    def __len__(self) -> int:
        return len(self._cells)
