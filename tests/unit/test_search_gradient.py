"""Transitions, gradients and the hints that come of them."""

from __future__ import annotations

import math

import pytest

from kfd.core.search.archive import Cell
from kfd.core.search.gradient import GradientField, GradientPolicy, exploration
from kfd.core.search.hints import HintPolicy, hints_at
from kfd.core.search.transitions import Change, Transition, change_of

HERE: Cell = (1, 1, 1)
UP: Cell = (2, 1, 1)
DOWN: Cell = (0, 1, 1)


def move(ordinal: int, child: Cell | None, delta: float, *, kept: bool = False, parent: Cell = HERE) -> Transition:
    change = change_of(correct=child is not None, kept=kept, delta=delta)
    return Transition(ordinal=ordinal, parent=parent, child=child, delta=delta, change=change, operator="rewrite")


def test_classes_of_change() -> None:
    assert change_of(correct=False, kept=False, delta=-0.4) is Change.FAILURE
    assert change_of(correct=True, kept=True, delta=-0.4) is Change.IMPROVEMENT
    assert change_of(correct=True, kept=False, delta=-0.005) is Change.NEUTRAL
    assert change_of(correct=True, kept=False, delta=-0.02) is Change.REGRESSION


def test_a_failure_has_no_cell_and_a_cell_is_on_the_grid() -> None:
    with pytest.raises(ValueError, match="exactly failures"):
        Transition(ordinal=1, parent=HERE, child=UP, delta=0, change=Change.FAILURE, operator="patch")
    with pytest.raises(ValueError, match="levels 0 to 3"):
        move(1, (4, 0, 0), 0.1)
    with pytest.raises(ValueError, match="finite"):
        move(1, UP, math.nan)


def test_fitness_gradient_is_the_papers_sum_over_the_same_sum_of_sizes() -> None:
    policy = GradientPolicy(decay=0.5, min_moves=1)
    # In order of asking; the last is evaluation 3, so weights are 1/4, 1/2 and 1.
    field = GradientField(policy, [move(1, UP, 0.4), move(2, DOWN, 0.2), move(3, UP, -0.1)])
    signed = 0.4 * 0.25 - 0.2 * 0.5 - 0.1
    size = 0.4 * 0.25 + 0.2 * 0.5 + 0.1
    assert field.at(HERE, {HERE: 1.0}).fitness == pytest.approx((signed / size, 0.0, 0.0))


def test_rate_gradient_is_the_difference_of_improvement_rates() -> None:
    policy = GradientPolicy(decay=1.0, min_moves=1)
    moves = [move(n, UP, 0.1, kept=True) for n in range(4)] + [move(4 + n, DOWN, -0.1) for n in range(2)]
    found = GradientField(policy, moves).at(HERE, {HERE: 1.0})
    assert found.rate == pytest.approx((5 / 6 - 1 / 4, 0.0, 0.0))
    assert found.moves == (6, 0, 0)


def test_opening_a_cell_at_a_loss_is_no_improvement_along_the_way() -> None:
    field = GradientField(GradientPolicy(decay=1.0, min_moves=1), [move(1, UP, -0.3, kept=True)])
    assert field.at(HERE, {HERE: 1.0}).rate[0] < 0


def test_nothing_is_said_before_there_is_evidence_and_failures_are_no_moves() -> None:
    field = GradientField(GradientPolicy(min_moves=3), [move(1, UP, 0.5), move(2, None, -0.6), move(3, UP, 0.5)])
    found = field.at(HERE, {HERE: 1.0})
    assert found.fitness == found.rate == (0.0, 0.0, 0.0)
    assert hints_at(HERE, found, HintPolicy(limit=3, threshold=0.0), trends={}, occupied=()) == ()
    field.add(move(4, UP, 0.5))
    assert field.at(HERE, {HERE: 1.0}).fitness[0] == 1.0


def test_exploration_points_to_the_empty_part_with_unit_length() -> None:
    held = {(a, b, c): 1.0 for a in range(2) for b in range(4) for c in range(4)}
    found = exploration((1, 1, 1), held)
    assert found[0] > 0.9
    assert math.hypot(*found) == pytest.approx(1.0)
    full = {(a, b, c): 1.0 for a in range(4) for b in range(4) for c in range(4)}
    assert exploration((1, 1, 1), full) == (0.0, 0.0, 0.0)
    assert exploration((1, 1, 1), {}) == (0.0, 0.0, 0.0)


def test_combined_is_weighted_and_strength_is_its_length() -> None:
    policy = GradientPolicy(fitness=0.5, rate=0.25, exploration=0.0, decay=1.0, min_moves=1)
    found = GradientField(policy, [move(1, UP, 0.5, kept=True)]).at(HERE, {HERE: 1.0})
    assert found.combined == pytest.approx((0.5 * 1.0 + 0.25 * (2 / 3 - 1 / 2), 0.0, 0.0))
    assert found.strength == pytest.approx(found.combined[0])


def test_evidence_fades_when_nothing_new_comes() -> None:
    field = GradientField(GradientPolicy(), [move(n, UP, 0.3, kept=True) for n in range(6)])
    fresh, old = field.at(HERE, {HERE: 1.0}, 6), field.at(HERE, {HERE: 1.0}, 600)
    assert 0 < old.rate[0] < 0.5 * fresh.rate[0]
    assert old.fitness == fresh.fitness


def test_a_late_arrival_counts_with_its_age() -> None:
    policy = GradientPolicy(decay=0.5, min_moves=1)
    in_order = GradientField(policy, [move(1, UP, 0.4), move(2, DOWN, 0.2)])
    late = GradientField(policy, [move(2, DOWN, 0.2), move(1, UP, 0.4)])
    assert late.at(HERE, {}).fitness == pytest.approx(in_order.at(HERE, {}).fitness)


def test_a_hint_speaks_of_the_direction_and_never_points_off_the_grid() -> None:
    field = GradientField(GradientPolicy(), [move(n, UP, 0.3, kept=True) for n in range(6)])
    (hint,) = hints_at(HERE, field.at(HERE, {HERE: 1.0}), HintPolicy(limit=3), trends={}, occupied=())
    assert hint.direction == (0, 1)
    assert "tiles" in hint.text
    worse = GradientField(GradientPolicy(), [move(n, UP, -0.3) for n in range(6)])
    (hint,) = hints_at(HERE, worse.at(HERE, {HERE: 1.0}), HintPolicy(limit=3), trends={}, occupied=())
    assert hint.direction == (0, -1)
    top: Cell = (3, 3, 3)
    up_there = GradientField(GradientPolicy(), [move(n, (2, 3, 3), -0.3, parent=top) for n in range(6)])
    assert hints_at(top, up_there.at(top, {top: 1.0}), HintPolicy(limit=3), trends={}, occupied=()) == ()


def test_trends_are_rates_of_improvement_over_all_cells_less_the_common_one() -> None:
    policy = GradientPolicy(decay=1.0)
    other = [move(5 + n, (3, 1, 1), 0.2, kept=True, parent=UP) for n in range(2)]
    field = GradientField(
        policy, [*(move(n, UP, 0.1, kept=True) for n in range(2)), *(move(9, DOWN, -0.1),) * 4, *other]
    )
    assert field.trends(9) == pytest.approx({(0, 1): (4 + 1) / 6 - 0.5, (0, -1): (0 + 1) / 6 - 0.5})
    assert GradientField(policy).trends(9) == {}
    fading = GradientField(GradientPolicy(decay=0.5), [move(1, UP, 0.1, kept=True)])
    assert fading.trends(2) == {(0, 1): 0.0}
    assert fading.trends(3) == {}


def test_a_hint_leads_to_a_cell_that_holds_nothing_along_the_best_trend() -> None:
    nothing = GradientField(GradientPolicy()).at(HERE, {})
    trends = {(0, 1): 0.3, (1, 1): 0.2, (1, -1): 0.1, (2, -1): -0.1}

    def directions(occupied: set[Cell], **changes: float) -> list[tuple[int, int]]:
        policy = HintPolicy(limit=3, **changes)  # type: ignore[arg-type]
        return [hint.direction for hint in hints_at(HERE, nothing, policy, trends=trends, occupied=occupied)]

    assert directions(set()) == [(0, 1), (1, 1)]
    assert directions({UP}) == [(1, 1)]
    assert directions({UP, (1, 2, 1)}) == [(1, -1)]
    assert directions(set(), threshold=0.25) == [(0, 1)]
    # The cell's own moves are heard beside the trend, once there are enough of them.
    field = GradientField(GradientPolicy(), [move(n, UP, -0.3) for n in range(6)])
    own = field.at(HERE, {HERE: 1.0})
    for moves, expected in ((3, [(0, -1), (1, 1)]), (7, [(0, 1), (1, 1)])):
        found = hints_at(HERE, own, HintPolicy(limit=3, min_moves=moves, threshold=0.15), trends=trends, occupied=())
        assert [hint.direction for hint in found] == expected


def test_hint_limits_are_held() -> None:
    moves = [move(n, (2, 2, 2), 0.3, kept=True) for n in range(6)]
    found = GradientField(GradientPolicy(), moves).at(HERE, {HERE: 1.0})
    assert len(hints_at(HERE, found, HintPolicy(limit=3), trends={}, occupied=())) == 3
    assert len(hints_at(HERE, found, HintPolicy(limit=1), trends={}, occupied=())) == 1
    assert hints_at(HERE, found, HintPolicy(limit=0), trends={}, occupied=()) == ()
    assert hints_at(HERE, found, HintPolicy(limit=3, threshold=0.99), trends={}, occupied=()) == ()
    with pytest.raises(ValueError, match="limit is 0 to 3"):
        HintPolicy(limit=4)


@pytest.mark.parametrize("changed", [{"decay": 0.0}, {"decay": 1.1}, {"min_moves": 0}, {"fitness": -1.0}])
def test_a_policy_that_makes_no_sense_is_refused(changed: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"weights|decay"):
        GradientPolicy(**changed)  # type: ignore[arg-type]  # the keys are the fields'
