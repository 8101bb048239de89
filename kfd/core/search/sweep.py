"""Sweeps: the measured search over a template's declared tunables, with no model call.

A point is a tuple of indices, one a tunable; all zeros is the declared default. The next point is a pure function of
the rows measured so far, so a sweep is restored by reading them. Small spaces are measured in full. In large ones a few
points spread by the dice come first; then the neighbours (one tunable changed) of the best point and, every third time,
any point, each time the one that an additive model of log speed over the measured points predicts to be best. An
invalid point is a verdict, is not asked again and costs its place in the budget. No point is measured twice here: who
seems better is confirmed side by side before it displaces anything, so that a sweep never lowers the kept best.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kfd.core.dice import Dice

__all__ = ["Point", "Space", "SweepPolicy", "SweepRow", "next_point"]

Point = tuple[int, ...]

MAX_POINTS = 4096
"""Points of a space that are looked at; larger spaces are searched through their neighbourhoods and a sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Declared tunables. ``allowed`` says whether values (by name) satisfy the declared conditions."""

    names: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]
    allowed: Callable[[Mapping[str, int]], bool] = lambda _: True
    _points: dict[tuple[int, int], list[Point]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What ``points`` found: a sweep asks for them before each of its points."""

    def __post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.values) or not all(self.values):
            raise ValueError("a space has at least one tunable and every tunable at least one value")

    @property
    def size(self) -> int:
        """Points before conditions."""
        return math.prod(len(values) for values in self.values)

    def chosen(self, point: Point) -> dict[str, int]:
        """Values by name."""
        return {name: values[i] for name, values, i in zip(self.names, self.values, point, strict=True)}

    def allows(self, point: Point) -> bool:
        """Whether the point satisfies the conditions."""
        return self.allowed(self.chosen(point))

    def points(self, dice: Dice, ordinal: int) -> list[Point]:
        """Allowed points: all of them, or ``MAX_POINTS`` drawn ones of a larger space."""
        found = self._points.get((dice.seed, ordinal))
        if found is None:
            found = self._points[dice.seed, ordinal] = self._allowed_points(dice, ordinal)
        return found

    def _allowed_points(self, dice: Dice, ordinal: int) -> list[Point]:
        if self.size <= MAX_POINTS:
            every: Iterator[Point] = itertools.product(*(range(len(values)) for values in self.values))
        else:
            every = (self._drawn(dice, ordinal + n) for n in range(MAX_POINTS))
        return [point for point in dict.fromkeys(every) if self.allows(point)]

    def _drawn(self, dice: Dice, ordinal: int) -> Point:
        return tuple(
            int(dice.roll(f"sweep:{name}", ordinal) * len(values))
            for name, values in zip(self.names, self.values, strict=True)
        )

    def neighbours(self, point: Point) -> list[Point]:
        """Allowed points that differ in one tunable, nearest values first."""
        found = []
        for axis, values in enumerate(self.values):
            for other in range(len(values)):
                if other != point[axis]:
                    found.append((abs(other - point[axis]), (*point[:axis], other, *point[axis + 1 :])))
        found.sort()
        return [near for _, near in found if self.allows(near)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPolicy:
    """Budget and effort of one sweep."""

    budget: int = 24
    """Measurements."""
    exhaustive: int = 16
    """Allowed points up to which all are measured."""
    spread: int = 5
    """Points measured before the model is believed."""

    def __post_init__(self) -> None:
        if min(self.budget, self.spread) < 1 or self.exhaustive < 0:
            raise ValueError("a sweep's budget and spread are at least 1, exhaustive is not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow:
    """One measurement of a point, or its verdict: ``speedup`` None when it is invalid, with the reason."""

    point: Point
    speedup: float | None
    low: float = 0.0
    high: float = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        if self.speedup is not None and not (math.isfinite(self.high) and 0 < self.low <= self.speedup <= self.high):
            raise ValueError(f"point {self.point}: the interval must enclose a positive, finite speedup")


def _known(rows: Sequence[SweepRow]) -> dict[Point, float]:
    """Log speedup of every valid point."""
    return {row.point: math.log(row.speedup) for row in rows if row.speedup is not None}


def next_point(space: Space, rows: Sequence[SweepRow], policy: SweepPolicy, dice: Dice, ordinal: int) -> Point | None:
    """The point to measure next; None when the sweep is over. ``ordinal``: the candidate that is swept."""
    if len(rows) >= policy.budget:
        return None
    seen = {row.point for row in rows}
    points = space.points(dice, ordinal)
    if len(points) <= policy.exhaustive:
        return next((point for point in points if point not in seen), None)
    open_points = [point for point in points if point not in seen]
    if not open_points:
        return None
    default = (0,) * len(space.names)
    if default not in seen and space.allows(default):
        return default
    known = _known(rows)
    if len(rows) < policy.spread or len(known) < 2:
        return max(open_points, key=lambda point: (_distance(point, seen), dice.roll(f"spread:{point}", ordinal)))
    best = max(known, key=lambda point: (known[point], point))
    near = [point for point in space.neighbours(best) if point not in seen]
    among = open_points if len(rows) % 3 == 2 or not near else near
    worth = _predicted(known)
    return max(among, key=lambda point: (worth(point), dice.roll(f"tie:{point}", ordinal)))


def _distance(point: Point, seen: set[Point]) -> int:
    """Tunables that differ from the nearest measured point."""
    return min((sum(a != b for a, b in zip(point, other, strict=True)) for other in seen), default=0)


def _predicted(known: Mapping[Point, float]) -> Callable[[Point], float]:
    """An additive model: the mean and one effect for each value of each tunable, shrunk by one made-up observation.

    Effects are fitted in turn to what the others leave (three rounds), so that a value measured only beside a bad one
    is not blamed for it. A value never seen is expected to be a little better than average: worth a look.
    """
    mean = sum(known.values()) / len(known)
    axes = len(next(iter(known)))
    effects: list[dict[int, float]] = [{} for _ in range(axes)]
    spread = math.sqrt(sum((value - mean) ** 2 for value in known.values()) / len(known))
    fitted = dict.fromkeys(known, 0.0)
    for _ in range(3):
        for axis in range(axes):
            sums: dict[int, list[float]] = {}
            for point, speed in known.items():
                old = effects[axis].get(point[axis], 0.0)
                sums.setdefault(point[axis], []).append(speed - mean - fitted[point] + old)
            new = {value: sum(left) / (len(left) + 1) for value, left in sums.items()}
            for point in known:
                fitted[point] += new[point[axis]] - effects[axis].get(point[axis], 0.0)
            effects[axis] = new
    unseen = 0.5 * spread
    return lambda point: sum(effects[axis].get(value, unseen) for axis, value in enumerate(point))
