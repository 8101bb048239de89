"""The MAP-Elites archive: one elite a cell, kept until a newcomer has beaten it side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from kfd.base.digest import Digest
from kfd.base.ids import CandidateId

__all__ = ["LEVELS", "AddResult", "AddStatus", "Archive", "Cell", "Elite", "clearly_better"]

LEVELS = 4
"""Levels on each of the three axes: memory, algorithm, parallelism (the paper's 4 x 4 x 4 grid)."""

Cell: TypeAlias = tuple[int, int, int]


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
    """Characters of the kernel text."""

    def __post_init__(self) -> None:
        if not all(0 <= level < LEVELS for level in self.cell):
            raise ValueError(f"no such cell: {self.cell}; each axis has levels 0 to {LEVELS - 1}")
        if not all(math.isfinite(x) for x in (self.fitness, self.speedup, self.low, self.high)):
            raise ValueError(f"{self.candidate}: fitness, speedup and interval must be finite")
        if not 0 < self.low <= self.speedup <= self.high:
            raise ValueError(f"{self.candidate}: the interval must enclose the speedup")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """What became of an entry. ``improvement`` is the gain in fitness over what the cell held (0 if nothing)."""

    status: AddStatus
    improvement: float
    replaced: CandidateId | None


def clearly_better(new: Elite, old: Elite) -> bool:
    """Whether the newcomer's gain exceeds the noise of both measurements.

    The log ratio of two independent measurements has the half-width sqrt(h1^2 + h2^2).
    """
    gain = math.log(new.speedup / old.speedup)
    new_half = math.log(new.high / new.low) / 2
    old_half = math.log(old.high / old.low) / 2
    return gain > 0 and gain > math.hypot(new_half, old_half)


class Archive:
    """At most one elite a cell, and among them the champion: the campaign's best. Adding is atomic.

    The champion is not the elite with the highest number: numbers of different jobs were taken under different
    conditions. It is the first elite, and after that whoever has beaten it side by side.
    """

    def __init__(self, elites: Iterable[Elite] = (), champion: CandidateId | None = None) -> None:
        self._cells: dict[Cell, Elite] = {}
        for elite in elites:
            if elite.cell in self._cells:
                raise ValueError(f"two elites for cell {elite.cell}")
            self._cells[elite.cell] = elite
        self._champion = next((elite for elite in self._cells.values() if elite.candidate == champion), None)
        if self._champion is None:
            self._champion = self._fastest()

    def rival(self, new: Elite, lost_to: CandidateId | None = None) -> Elite | None:
        """Whom a newcomer must beat side by side: the champion, or its cell's elite, when it seems clearly faster.

        One that it has lost to is no rival any more. None: it displaces nobody.
        """
        for old in (self._champion, self._cells.get(new.cell)):
            if old is not None and old.candidate != lost_to and clearly_better(new, old):
                return old
        return None

    def add(self, new: Elite, *, beaten: CandidateId | None = None) -> AddResult:
        """Take a newcomer in if its cell is empty or it has beaten the cell's elite (or the champion) side by side."""
        old, champion = self._cells.get(new.cell), self._champion
        conquers = champion is None or beaten == champion.candidate
        if old is not None and not conquers and beaten != old.candidate:
            return AddResult(status=AddStatus.NOT_ADDED, improvement=0.0, replaced=None)
        self._cells[new.cell] = new
        if conquers:
            self._champion = new
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
