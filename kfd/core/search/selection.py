"""Parent selection: which elite the next child comes from (the paper's uniform and fitness-proportionate)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kfd.core.dice import Dice
from kfd.core.search.archive import Elite

__all__ = ["SelectionWeights", "choose_parent", "inspirations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionWeights:
    """Shares of the strategies."""

    uniform: float = 0.4
    fitness: float = 0.6

    def __post_init__(self) -> None:
        if min(self.uniform, self.fitness) < 0 or self.uniform + self.fitness <= 0:
            raise ValueError("selection weights are not negative and one is positive")


def choose_parent(elites: Sequence[Elite], weights: SelectionWeights, dice: Dice, ordinal: int) -> Elite:
    """One elite: uniform over occupied cells, or with probability proportional to fitness.

    Raises ValueError when there is no elite.
    """
    strategy = dice.pick(("uniform", "fitness"), (weights.uniform, weights.fitness), "strategy", ordinal)
    shares = [1.0] * len(elites) if strategy == "uniform" else [elite.fitness for elite in elites]
    return dice.pick(elites, shares, "parent", ordinal)


def inspirations(elites: Sequence[Elite], parent: Elite, dice: Dice, ordinal: int, count: int) -> list[Elite]:
    """Up to ``count`` other elites to show beside the parent: the best one first, the rest drawn from other cells."""
    others = [elite for elite in elites if elite.candidate != parent.candidate]
    if not others or count <= 0:
        return []
    best = max(others, key=lambda elite: (elite.fitness, -elite.ordinal))
    rest = [elite for elite in others if elite is not best]
    rest.sort(key=lambda elite: dice.roll(f"inspiration:{elite.cell}", ordinal))
    return [best, *rest[: count - 1]]
