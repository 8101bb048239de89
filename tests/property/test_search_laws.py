"""Laws of the search over random campaigns: bounds, budgets, and independence of order and restarts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.core.dice import Dice
from kfd.core.search.archive import Cell
from kfd.core.search.bandit import Arm, Bandit, BanditPolicy
from kfd.core.search.budgets import Account, Amount, Limits
from kfd.core.search.gradient import GradientField, GradientPolicy
from kfd.core.search.hints import HintPolicy, hints_at
from kfd.core.search.sweep import Space, SweepPolicy, SweepRow, next_point
from kfd.core.search.transitions import Transition, change_of

quick = settings(deadline=None, max_examples=60, derandomize=True, database=None)
levels = st.integers(0, 3)
cells = st.tuples(levels, levels, levels)
moves = st.lists(
    st.tuples(cells, st.one_of(st.none(), cells), st.floats(-1.5, 1.5), st.booleans()), min_size=1, max_size=60
)
amounts = st.builds(
    Amount,
    micro_money=st.integers(0, 50),
    tokens=st.integers(0, 50),
    device_ns=st.integers(0, 50),
)


def transitions(found: Sequence[tuple[Cell, Cell | None, float, bool]]) -> list[Transition]:
    return [
        Transition(
            ordinal=ordinal,
            parent=parent,
            child=child,
            delta=delta,
            change=change_of(correct=child is not None, kept=kept, delta=delta),
            operator="rewrite",
        )
        for ordinal, (parent, child, delta, kept) in enumerate(found)
    ]


@quick
@given(moves, cells, st.dictionaries(cells, st.floats(0.5, 3.0)))
def test_gradients_are_bounded_and_hints_stay_on_the_grid(
    found: list[tuple[Cell, Cell | None, float, bool]], cell: Cell, held: dict[Cell, float]
) -> None:
    gradient = GradientField(GradientPolicy(), transitions(found)).at(cell, held)
    for part in (gradient.fitness, gradient.rate, gradient.exploration, gradient.combined):
        assert all(math.isfinite(value) and abs(value) <= 1 + 1e-9 for value in part)
    hints = hints_at(cell, gradient, HintPolicy(limit=3, threshold=0.0, min_moves=0), trends={}, occupied=())
    assert len(hints) <= 3
    assert len({hint.direction[0] for hint in hints}) == len(hints)
    for hint in hints:
        axis, sign = hint.direction
        assert 0 <= cell[axis] + sign <= 3


@quick
@given(moves, cells)
def test_a_late_report_teaches_the_same(found: list[tuple[Cell, Cell | None, float, bool]], cell: Cell) -> None:
    """Children are judged in any order; what they teach goes by the order of asking."""
    in_order = transitions(found)
    one = GradientField(GradientPolicy(), in_order).at(cell, {})
    other = GradientField(GradientPolicy(), in_order[::-1]).at(cell, {})
    for a, b in zip((*one.fitness, *one.rate), (*other.fitness, *other.rate), strict=True):
        assert math.isclose(a, b, abs_tol=1e-6)


@quick
@given(st.lists(st.tuples(st.integers(0, 9), amounts, amounts, st.booleans()), max_size=60), amounts)
def test_no_order_of_reserving_and_settling_exceeds_a_limit(
    steps: list[tuple[int, Amount, Amount, bool]], top: Amount
) -> None:
    limits = Limits(**{name: 3 * value for name, value in top.values.items()})
    account = Account(limits)
    most: dict[str, Amount] = {}
    for key, wanted, cost, settles in steps:
        name = str(key)
        if name not in most:
            if account.reserve(name, wanted) is None:
                most[name] = wanted
        elif settles:
            bounded = Amount(**{k: min(v, most[name].values[k]) for k, v in cost.values.items()})
            account.settle(name, bounded)
            del most[name]
        else:
            account.release(name)
            del most[name]
        assert limits.first_exceeded(account.committed) is None
        assert dict(account.reservations) == most


@quick
@given(st.integers(0, 10_000), st.lists(st.floats(0.2, 5.0), min_size=64, max_size=64), st.sets(st.integers(0, 63)))
def test_a_sweep_spends_its_budget_on_points_that_it_has_not_seen(
    seed: int, speeds: list[float], invalid: set[int]
) -> None:
    space = Space(names=("A", "B", "C"), values=((1, 2, 4, 8),) * 3)
    policy, rows, dice = SweepPolicy(budget=20), list[SweepRow](), Dice(seed)
    while (point := next_point(space, rows, policy, dice, 1)) is not None:
        index = point[0] * 16 + point[1] * 4 + point[2]
        speed = speeds[index]
        if index in invalid:
            rows.append(SweepRow(point=point, speedup=None, reason="bad"))
        else:
            rows.append(SweepRow(point=point, speedup=speed, low=speed * 0.99, high=speed * 1.01))
        assert len(rows) <= 20
    assert len({row.point for row in rows}) == len(rows) == 20


@quick
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.floats(-1, 1), st.floats(0, 1)), max_size=40),
    st.integers(0, 1000),
)
def test_the_bandit_always_chooses_an_offered_arm_and_survives_a_restart(
    pulls: list[tuple[str, str, float, float]], ordinal: int
) -> None:
    arms = [Arm(model=model, operator=operator, prompt="p") for model in "abc" for operator in "xy"]
    bandit = Bandit(BanditPolicy())
    for model, operator, gain, price in pulls:
        bandit.pulled(Arm(model=model, operator=operator, prompt="p"), gain=gain, price=price)
    chosen = bandit.choose(arms, [1.0] * len(arms), Dice(1), ordinal)
    assert chosen in arms
    assert Bandit(BanditPolicy(), bandit.credits).choose(arms, [1.0] * len(arms), Dice(1), ordinal) == chosen
