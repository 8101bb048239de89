"""Sweeps: order of points, noise, constraints, budget, and that they never lower the kept best."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from kfd.core.dice import Dice
from kfd.core.search.sweep import MAX_POINTS, Point, Space, SweepPolicy, SweepRow, next_point, winner
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
    rows = sweep(SMALL, SweepPolicy(budget=50, finals=0), lambda point: 1.0 + point[0])
    assert sorted(row.point for row in rows) == list(itertools.product(range(2), range(3)))


def test_the_contracts_conditions_are_never_broken() -> None:
    tune = parse("// [TUNE] TILE in {8, 16, 32}; VEC in {1, 2, 4}; where TILE * VEC <= 64")
    space = Space(
        names=tuple(one.name for one in tune.tunables),
        values=tuple(one.values for one in tune.tunables),
        allowed=lambda values: all(condition.holds(values) for condition in tune.conditions),
    )
    rows = sweep(space, SweepPolicy(budget=50, finals=0), lambda _: 1.0)
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
    won = winner(rows, (0.99, 1.01))
    assert won is not None
    assert won[0] == 0


def test_nothing_but_invalid_points_ends_and_has_no_winner() -> None:
    rows = sweep(SMALL, SweepPolicy(budget=50), lambda _: None)
    assert len(rows) == 6
    assert winner(rows, (0.99, 1.01)) is None


def test_a_large_space_is_climbed_in_a_tenth_of_its_points() -> None:
    best = (2, 1, 3, 0)
    rows = sweep(LARGE, SweepPolicy(budget=26, finals=2), lambda p: math.exp(-0.2 * sum(map(_gap, p, best))))
    assert best in [row.point for row in rows]
    assert winner(rows, (0.5, 0.51)) == best


def _gap(a: int, b: int) -> int:
    return abs(a - b)


def test_close_points_race_at_the_end_and_distant_ones_do_not() -> None:
    policy = SweepPolicy(budget=40, finals=4, repeats=3)
    fast: dict[Point, float] = {(1, 0): 1.50, (1, 1): 1.495}
    rows = sweep(SMALL, policy, lambda point: fast.get(point, 1.0))
    again = [row.point for row in rows[6:]]
    assert again
    assert set(again) <= set(fast)


def test_repeats_are_bounded() -> None:
    rows = sweep(SMALL, SweepPolicy(budget=1000, repeats=3), lambda _: 1.0)
    assert all(sum(row.point == point for row in rows) <= 3 for point in {row.point for row in rows})


def test_repeats_narrow_the_interval() -> None:
    kept = (0.98, 1.02)
    once = [measured((1, 0), 1.04, half=0.05)]
    assert winner(once, kept) is None
    assert winner(once * 9, kept) == (1, 0)


def test_a_sweep_never_lowers_the_kept_best() -> None:
    rows = sweep(LARGE, SweepPolicy(), lambda point: 1.0 - 0.01 * sum(point))
    assert winner(rows, (0.999, 1.001)) is None
    assert winner(rows, (1.9, 2.1)) is None
    assert winner([], (1.0, 1.0)) is None


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
