"""Parent strategies: uniform, fitness, curiosity, island (the paper, section on parent selection).

* *uniform*: every occupied cell alike.
* *fitness*: by rank, ``1/rank^pressure``. Ranks, so that neither the scale nor the sign of fitness matters (a list of
  -1, -100, -1000 must not become an even draw, nor one tenfold elite the only parent).
* *curiosity*: by improvement potential: the length of the combined gradient, plus the rank weight, divided by
  ``sqrt(1 + children)`` so that an elite whose children teach nothing more is asked less (points of a sweep are no
  answers, and no children here).
* *island*: the elites of one of K sub-populations, in turn; a child belongs to its parent's island, and nothing of
  other islands is shown with it. An island that holds nothing yet begins from nothing. Every ``interval`` evaluations
  (a global count, not the most advanced island's) each island's best is shown to its right neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kfd.core.dice import Dice
from kfd.core.search.archive import Cell, Elite, Niche

__all__ = ["Islands", "ParentWeights", "Strategy", "choose_strategy", "rank_weights", "strategy_weights"]

MAX_ISLANDS = 16


class Strategy(StrEnum):
    """How a parent is found."""

    UNIFORM = "uniform"
    FITNESS = "fitness"
    CURIOSITY = "curiosity"
    ISLAND = "island"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentWeights:
    """Shares of the strategies; they need not add up to one. Defaults: see docs/search.md."""

    uniform: float = 0.1
    """Share of parents drawn alike from all occupied cells."""
    fitness: float = 2.0
    """Share of parents drawn by their rank in fitness."""
    curiosity: float = 0.0
    """Share of parents drawn by what the gradients promise."""
    island: float = 0.0
    """Share of parents drawn from one island in turn."""
    pressure: float = 2.0
    """Exponent of the rank: 0 is uniform."""
    islands: int = 3
    """Sub-populations of the island strategy."""
    migration_interval: int = 50
    """Evaluations between migrations; 0 switches migration off."""

    def __post_init__(self) -> None:
        shares = (self.uniform, self.fitness, self.curiosity, self.island)
        if not all(math.isfinite(share) and share >= 0 for share in shares) or not any(shares):
            raise ValueError("shares of parent strategies are not negative and one is positive")
        if not 0 <= self.pressure <= 10 or not 1 <= self.islands <= MAX_ISLANDS or self.migration_interval < 0:
            raise ValueError(f"pressure is 0 to 10, islands are 1 to {MAX_ISLANDS}, the interval is not negative")


def choose_strategy(weights: ParentWeights, dice: Dice, ordinal: int) -> Strategy:
    """Which strategy finds the parent of candidate ``ordinal``."""
    shares = (weights.uniform, weights.fitness, weights.curiosity, weights.island)
    return dice.pick(tuple(Strategy), shares, "strategy", ordinal)


def rank_weights(elites: Sequence[Elite], pressure: float) -> list[float]:
    """``1/rank^pressure`` of each elite, rank 1 the fittest; the earlier one among equals."""
    order = sorted(range(len(elites)), key=lambda i: (-elites[i].fitness, elites[i].ordinal))
    weights = [0.0] * len(elites)
    for rank, index in enumerate(order, start=1):
        weights[index] = rank**-pressure
    return weights


def strategy_weights(
    strategy: Strategy,
    elites: Sequence[Elite],
    weights: ParentWeights,
    strengths: Mapping[Cell, float],
    children: Mapping[str, int],
) -> list[float]:
    """The weight of every elite as a parent. ``strengths``: gradient length by cell; ``children``: counts by parent."""
    if strategy is Strategy.UNIFORM:
        return [1.0] * len(elites)
    ranked = rank_weights(elites, weights.pressure)
    if strategy is not Strategy.CURIOSITY:
        return ranked
    return [
        rank * (0.25 + strengths.get(elite.cell, 0.0)) / math.sqrt(1 + children.get(elite.candidate, 0))
        for elite, rank in zip(elites, ranked, strict=True)
    ]


class Islands:
    """K sub-populations: the best elite of each cell on each island. Bounded by K times 64."""

    def __init__(self, weights: ParentWeights) -> None:
        self._count = weights.islands
        self._interval = weights.migration_interval
        self._cells: list[dict[Niche, Elite]] = [{} for _ in range(self._count)]
        self._seen = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elites on each island."""
        return tuple(len(cells) for cells in self._cells)

    def turn(self, ordinal: int) -> int:
        """Whose turn it is to breed candidate ``ordinal``."""
        return ordinal % self._count

    def on(self, island: int) -> list[Elite]:
        """Elites of one island, in the order of their cells."""
        cells = self._cells[island % self._count]
        return [cells[cell] for cell in sorted(cells)]

    def add(self, elite: Elite, island: int) -> None:
        """A correct child of this island; kept when it is the best of its cell there."""
        cells = self._cells[island % self._count]
        old = cells.get(elite.niche)
        if old is None or elite.fitness > old.fitness:
            cells[elite.niche] = elite

    def evaluated(self) -> bool:
        """Count one evaluation; migrate when the interval is full. Whether it migrated."""
        self._seen += 1
        if self._interval == 0 or self._seen % self._interval or self._count == 1:
            return False
        bests = [max(cells.values(), key=lambda e: (e.fitness, -e.ordinal), default=None) for cells in self._cells]
        for island, best in enumerate(bests):
            if best is not None:
                self.add(best, island + 1)
        return True

    def restart_worst(self, seed: Elite) -> int:
        """Empty the island whose best is lowest and seed it anew; its number."""
        heights = [max((e.fitness for e in cells.values()), default=-math.inf) for cells in self._cells]
        worst = min(range(self._count), key=lambda island: (heights[island], island))
        self._cells[worst] = {seed.niche: seed}
        return worst
