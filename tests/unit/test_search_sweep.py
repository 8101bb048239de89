"""Sweeps: order of points, constraints, budget."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from kfd.core.dice import Dice
from kfd.core.search.sweep import MAX_POINTS, Point, Space, SweepPolicy, SweepRow, next_point
from kfd.tasks.tunables import parse

DICE = Dice(7)
SMALL = Space(names=("A", "B"), values=((8, 16), (1, 2, 4)))
LARGE = Space(names=("A", "B", "C", "D"), values=((8, 16, 32, 64),) * 4)


def measured(point: Point, speedup: float, half: float = 0.01) -> SweepRow:
    return SweepRow(point=point, speedup=speedup, low=speedup * math.exp(-half), high=speedup * math.exp(half))


def sweep(
    space: Space, policy: SweepPolicy, speed: Callable[[Point], float | None], rows: list[SweepRow] | None = None
) -> list[SweepRow]:
    found = rows or []
    while (point := next_point(space, found, policy, DICE, 5)) is not None:
        value = speed(point)
        found.append(SweepRow(point=point, speedup=None, reason="bad") if value is None else measured(point, value))
    return found


def test_a_small_space_is_measured_in_full_once() -> None:
    rows = sweep(SMALL, SweepPolicy(budget=50), lambda point: 1.0 + point[0])
    assert sorted(row.point for row in rows) == list(itertools.product(range(2), range(3)))


def test_the_contracts_conditions_are_never_broken() -> None:
    tune = parse("// [TUNE] TILE in {8, 16, 32}; VEC in {1, 2, 4}; where TILE * VEC <= 64")
    space = Space(
        names=tuple(one.name for one in tune.tunables),
        values=tuple(one.values for one in tune.tunables),
        allowed=lambda values: all(condition.holds(values) for condition in tune.conditions),
    )
    rows = sweep(space, SweepPolicy(budget=50), lambda _: 1.0)
    chosen = [space.chosen(row.point) for row in rows]
    assert len(chosen) == 8
    assert all(one["TILE"] * one["VEC"] <= 64 for one in chosen)


def test_the_default_comes_first_and_the_budget_is_held() -> None:
    rows = sweep(LARGE, SweepPolicy(budget=20), lambda point: 1.0 + sum(point))
    assert rows[0].point == (0, 0, 0, 0)
    assert len(rows) == 20


def test_an_invalid_point_costs_its_place_and_is_not_asked_again() -> None:
    rows = sweep(LARGE, SweepPolicy(budget=30), lambda point: None if point[0] else 1.0 + point[1])
    bad = [row.point for row in rows if row.speedup is None]
    assert bad
    assert len(bad) == len(set(bad))
    assert len(rows) == 30
    assert {row.point[0] for row in rows if row.speedup is not None} == {0}


def test_nothing_but_invalid_points_ends() -> None:
    for space, count in ((SMALL, 6), (LARGE, 50)):
        rows = sweep(space, SweepPolicy(budget=50), lambda _: None)
        assert len({row.point for row in rows}) == len(rows) == count


def test_a_large_space_is_climbed_in_a_tenth_of_its_points() -> None:
    best = (2, 1, 3, 0)
    rows = sweep(LARGE, SweepPolicy(budget=24), lambda p: math.exp(-0.2 * sum(map(_gap, p, best))))
    assert best in [row.point for row in rows]


def _gap(a: int, b: int) -> int:
    return abs(a - b)


def test_no_point_is_measured_twice_and_a_space_that_is_used_up_ends() -> None:
    space = Space(names=("A", "B"), values=((1, 2, 3, 4, 5),) * 2)
    rows = sweep(space, SweepPolicy(budget=1000), lambda point: 1.0 + sum(point))
    assert len({row.point for row in rows}) == len(rows) == 25


def test_a_restored_sweep_goes_on_where_it_was() -> None:
    rng = random.Random(3)
    table = {point: rng.uniform(1, 2) for point in itertools.product(range(4), repeat=4)}
    whole = sweep(LARGE, SweepPolicy(), table.__getitem__)
    assert sweep(LARGE, SweepPolicy(), table.__getitem__, list(whole[:9])) == whole


def test_a_huge_space_is_sampled_not_enumerated() -> None:
    huge = Space(names=tuple(f"T{i}" for i in range(16)), values=(tuple(range(64)),) * 16)
    assert huge.size > 10**28
    assert len(huge.points(DICE, 1)) <= MAX_POINTS
    rows = sweep(huge, SweepPolicy(budget=4), lambda _: 1.0)
    assert len(rows) == 4


def test_rows_and_policies_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="enclose"):
        SweepRow(point=(0,), speedup=1.0, low=1.1, high=1.2)
    with pytest.raises(ValueError, match="enclose"):
        SweepRow(point=(0,), speedup=math.inf, low=1.0, high=math.inf)
    with pytest.raises(ValueError, match="at least one"):
        Space(names=(), values=())
    with pytest.raises(ValueError, match="budget"):
        SweepPolicy(budget=0)
