"""Gradients over the grid, learnt from transitions (the paper, section "Gradient-informed evolution").

With ``T`` the transitions that leave cell ``b``, ``s_d = sign(child[d] - parent[d])``, ``w = decay^age`` where age is
counted in evaluations (the release counts hours, which makes it inert in a short run):

* fitness:        ``F_d = (1/|T|) sum_t df_t s_d w(t)``, divided by ``(1/|T|) sum_t |df_t| w(t)`` over the same
  transitions, so that it is in [-1, 1] and can be added to R whatever the scale of fitness is;
* improvement:    ``R_d = P(improve | move +d) - P(improve | move -d)``, with decayed counts and a uniform prior;
* exploration:    ``E ~ sum_c (f_max - f_c)/|c-b|_1 * (c-b)/|c-b|_1`` over empty cells (``f_c = 0``) and occupied cells
  below the median fitness, scaled to unit length;
* combined:       ``0.4 F + 0.4 R + 0.2 E``;
* trend:          ``T_d = P(improve | move d) - P(improve | any move)``, moves from all cells together, with decayed
  counts and two made-up moves of the common rate. It is not in the paper: a cell that was just opened has no moves of
  its own, and those that a cell has lead to neighbours that are known by now.

F and R are 0 along an axis with fewer than ``min_moves`` moves that leave the cell. Sums are kept per cell and updated
in constant time; the same transitions in the same order give the same field after a restart.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from statistics import median

from kfd.core.search.archive import LEVELS, Cell
from kfd.core.search.transitions import Change, Direction, Transition

__all__ = ["Gradient", "GradientField", "GradientPolicy", "Vector", "exploration"]

Vector = tuple[float, float, float]
_FORGOTTEN = 0.5
"""Decayed moves along a direction below which it says nothing."""
_ZERO: Vector = (0.0, 0.0, 0.0)
_CELLS: tuple[Cell, ...] = tuple((a, b, c) for a, b, c in itertools.product(range(LEVELS), repeat=3))


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientPolicy:
    """Weights and memory."""

    fitness: float = 0.4
    """Weight of F, the change in fitness along a direction."""
    rate: float = 0.4
    """Weight of R, how often a direction improves."""
    exploration: float = 0.2
    """Weight of E, towards cells that are empty or poor."""
    decay: float = 0.995
    """Weight of a transition one evaluation later: 0.995 halves it in 138 evaluations."""
    min_moves: int = 3
    """Moves along an axis before F and R speak of it."""

    def __post_init__(self) -> None:
        if min(self.fitness, self.rate, self.exploration) < 0:
            raise ValueError("gradient weights are not negative")
        if not 0 < self.decay <= 1 or self.min_moves < 1:
            raise ValueError("decay is in (0, 1] and at least one move is needed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """The three parts at one cell; each component in [-1, 1]."""

    fitness: Vector = _ZERO
    rate: Vector = _ZERO
    exploration: Vector = _ZERO
    combined: Vector = _ZERO
    moves: tuple[int, int, int] = (0, 0, 0)
    """Transitions along each axis that F and R rest on."""

    @property
    def strength(self) -> float:
        """Length of the combined gradient."""
        return math.hypot(*self.combined)


@dataclass(slots=True)
class _Sums:
    """Decayed sums of the transitions that leave one cell, as of evaluation ``at``."""

    at: int = 0
    absolute: float = 0.0
    signed: list[float] = field(default_factory=lambda: [0.0] * 3)
    tried: dict[tuple[int, int], float] = field(default_factory=dict)
    better: dict[tuple[int, int], float] = field(default_factory=dict)
    moves: list[int] = field(default_factory=lambda: [0] * 3)

    def aged(self, factor: float) -> None:
        """Multiply every sum."""
        self.absolute *= factor
        self.signed = [value * factor for value in self.signed]
        self.tried = {key: value * factor for key, value in self.tried.items()}
        self.better = {key: value * factor for key, value in self.better.items()}


class GradientField:
    """All that transitions have taught about the grid. Bounded by the 64 cells, whatever their number."""

    def __init__(self, policy: GradientPolicy, transitions: Iterable[Transition] = ()) -> None:
        self._policy = policy
        self._sums: dict[Cell, _Sums] = {}
        self._pulls: list[float] = []
        self._towards: dict[Cell, Vector] = {}
        """E by cell for these pulls: elites change seldom, and every ask needs E at all of them."""
        for transition in transitions:
            self.add(transition)

    def add(self, transition: Transition) -> None:
        """Learn from one child. Late arrivals (smaller ordinals) count with the weight of their age."""
        sums = self._sums.setdefault(transition.parent, _Sums(at=transition.ordinal))
        decay = self._policy.decay
        weight = 1.0
        if transition.ordinal >= sums.at:
            sums.aged(decay ** (transition.ordinal - sums.at))
            sums.at = transition.ordinal
        else:
            weight = decay ** (sums.at - transition.ordinal)
        if transition.change is Change.FAILURE:
            return
        signs = transition.signs
        if any(signs):
            sums.absolute += abs(transition.delta) * weight
        for axis, sign in enumerate(signs):
            if not sign:
                continue
            sums.moves[axis] += 1
            sums.signed[axis] += transition.delta * sign * weight
            key = (axis, sign)
            sums.tried[key] = sums.tried.get(key, 0.0) + weight
            if transition.change is Change.IMPROVEMENT and transition.delta > 0:
                sums.better[key] = sums.better.get(key, 0.0) + weight

    def at(self, cell: Cell, elites: Mapping[Cell, float], now: int = 0) -> Gradient:
        """The gradient at a cell. ``elites``: fitness of every occupied cell; ``now``: ordinal that asks.

        Ageing all of a cell's evidence alike leaves F as it is and lets R fade to 0 through its prior.
        """
        return self._at(cell, self._exploration(_pulls(elites), [cell])[cell], now)

    def strengths(self, elites: Mapping[Cell, float], now: int) -> dict[Cell, float]:
        """Length of the combined gradient at every occupied cell."""
        explore = self._exploration(_pulls(elites), elites)
        return {cell: math.hypot(*self._combined(*self._evidence(cell, now)[:2], explore[cell])) for cell in elites}

    def trends(self, now: int) -> dict[Direction, float]:
        """The trend of every direction that is not forgotten, in [-1, 1]. ``now``: ordinal that asks."""
        tried: dict[Direction, float] = {}
        better: dict[Direction, float] = {}
        for cell in sorted(self._sums):
            sums = self._sums[cell]
            aged = self._policy.decay ** max(0, now - sums.at)
            for way, weight in sums.tried.items():
                tried[way] = tried.get(way, 0.0) + weight * aged
                better[way] = better.get(way, 0.0) + sums.better.get(way, 0.0) * aged
        total = sum(tried.values())
        if total <= 0:
            return {}
        common = sum(better.values()) / total
        return {
            way: (better[way] + 2.0 * common) / (weight + 2.0) - common
            for way, weight in tried.items()
            if weight >= _FORGOTTEN
        }

    def _exploration(self, pulls: list[float], cells: Iterable[Cell]) -> dict[Cell, Vector]:
        """E at the cells, computed once for equal pulls."""
        if pulls != self._pulls:
            self._pulls, self._towards = pulls, {}
        for cell in cells:
            if cell not in self._towards:
                self._towards[cell] = _towards(cell, pulls)
        return self._towards

    def _at(self, cell: Cell, explore: Vector, now: int) -> Gradient:
        fitness, rate, moves = self._evidence(cell, now)
        combined = self._combined(fitness, rate, explore)
        return Gradient(fitness=fitness, rate=rate, exploration=explore, combined=combined, moves=moves)

    def _evidence(self, cell: Cell, now: int) -> tuple[Vector, Vector, tuple[int, int, int]]:
        """F, R and the moves that they rest on."""
        sums = self._sums.get(cell)
        if sums is None:
            return _ZERO, _ZERO, (0, 0, 0)
        aged = self._policy.decay ** max(0, now - sums.at)
        fitness, rate = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        for axis, moves in enumerate(sums.moves):
            if moves < self._policy.min_moves:
                continue
            if sums.absolute > 0:
                fitness[axis] = sums.signed[axis] / sums.absolute
            rate[axis] = _rate(sums, axis, 1, aged) - _rate(sums, axis, -1, aged)
        return _vector(fitness), _vector(rate), (sums.moves[0], sums.moves[1], sums.moves[2])

    def _combined(self, fitness: Vector, rate: Vector, explore: Vector) -> Vector:
        f, r, e = self._policy.fitness, self._policy.rate, self._policy.exploration
        return (
            f * fitness[0] + r * rate[0] + e * explore[0],
            f * fitness[1] + r * rate[1] + e * explore[1],
            f * fitness[2] + r * rate[2] + e * explore[2],
        )


def _rate(sums: _Sums, axis: int, sign: int, aged: float) -> float:
    """P(improve | move) with a uniform prior: one made-up success in two made-up tries."""
    key = (axis, sign)
    return (sums.better.get(key, 0.0) * aged + 1.0) / (sums.tried.get(key, 0.0) * aged + 2.0)


def exploration(cell: Cell, elites: Mapping[Cell, float]) -> Vector:
    """E at a cell, unit length; zero when nothing is empty or below the median. ``elites``: fitness by cell."""
    return _towards(cell, _pulls(elites))


def _pulls(elites: Mapping[Cell, float]) -> list[float]:
    """``f_max - f_c`` of every cell that is empty or below the median, 0 of the others; in the order of the cells."""
    if not elites:
        return [0.0] * len(_CELLS)
    top, middle = max(elites.values()), median(elites.values())
    held = [elites.get(cell) for cell in _CELLS]
    return [top if value is None else top - value if value < middle else 0.0 for value in held]


def _towards(cell: Cell, pulls: list[float]) -> Vector:
    x, y, z = (sum(map(operator.mul, pulls, axis)) for axis in _geometry(cell))
    length = math.hypot(x, y, z)
    return (x / length, y / length, z / length) if length > 1e-12 else _ZERO


@cache
def _geometry(cell: Cell) -> tuple[list[float], list[float], list[float]]:
    """``(c - b) / |c - b|_1^2`` along each axis, for every cell c. At most 64 entries are ever kept."""
    axes: tuple[list[float], list[float], list[float]] = ([], [], [])
    for other in _CELLS:
        steps = [b - a for a, b in zip(cell, other, strict=True)]
        distance = sum(map(abs, steps)) or 1
        for axis, step in zip(axes, steps, strict=True):
            axis.append(step / distance**2)
    return axes


def _vector(values: list[float]) -> Vector:
    return (values[0], values[1], values[2])
