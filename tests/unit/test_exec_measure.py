"""Laws of kfd.base.measure."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.base.measure import PROCESS_NOISE, estimate, log_ratios, median, narrow_enough, speedup
from kfd.base.work import Comparison

TIMES = st.lists(st.integers(1, 10**9), min_size=1, max_size=30)


def comparison(case: str, candidate: list[int], baseline: list[int], name: str = "reference") -> Comparison:
    return Comparison(case=case, baseline=name, candidate_ns=tuple(candidate), baseline_ns=tuple(baseline))


def test_a_candidate_twice_as_slow_scores_one_half() -> None:
    result = speedup([comparison("a", [200, 220, 210], [100, 110, 105])])
    assert result.value == pytest.approx(0.5)
    # Rounds that agree exactly leave only what differs between processes.
    assert result.low == pytest.approx(0.5 * math.exp(-PROCESS_NOISE))
    assert result.high == pytest.approx(0.5 * math.exp(PROCESS_NOISE))


def test_speedup_is_the_geometric_mean_over_cases_and_tells_the_worst() -> None:
    result = speedup([comparison("a", [100], [400]), comparison("b", [100], [100])])
    assert result.value == pytest.approx(2.0)
    assert result.worst_case == "b"
    assert result.worst_value == pytest.approx(1.0)


@given(TIMES, st.integers(2, 50))
def test_swapping_the_sides_inverts_the_ratio(times: list[int], factor: int) -> None:
    slow = [time * factor for time in times]
    forward = speedup([comparison("a", times, slow)])
    backward = speedup([comparison("a", slow, times)])
    assert forward.value == pytest.approx(1 / backward.value)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.integers(0, 2**32))
def test_the_interval_holds_its_estimate_and_depends_on_the_seed_alone(values: list[float], seed: int) -> None:
    one = estimate([values], seed=seed, resamples=100)
    assert one.low <= one.value <= one.high
    assert one == estimate([values], seed=seed, resamples=100)
    assert min(values) - 1e-9 <= one.low <= one.high <= max(values) + 1e-9


def test_noise_in_one_round_does_not_move_the_median() -> None:
    assert estimate([[0.0, 0.0, 9.0, 0.0, 0.0]]).value == 0.0


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    dice = random.Random(7)
    covered = 0
    for trial in range(200):
        rounds = [[0.1 + dice.gauss(0, 0.05) for _ in range(24)] for _ in range(2)]
        one = estimate(rounds, seed=trial, resamples=300)
        covered += one.low <= 0.1 <= one.high
    assert covered >= 176


def test_equal_cases_are_resampled_together() -> None:
    # The same disturbance in opposite directions cancels only when rounds stay together.
    dice = random.Random(3)
    noise = [dice.gauss(0, 1) for _ in range(21)]
    assert estimate([noise, [-value for value in noise]]).half_width < estimate([noise, noise]).half_width


def test_more_rounds_narrow_the_interval_until_measuring_stops() -> None:
    dice = random.Random(1)
    few = [[dice.gauss(0, 0.05) for _ in range(6)]]
    many = [[dice.gauss(0, 0.05) for _ in range(200)]]
    assert not narrow_enough(few, 0.015, confidence=0.95, seed=0)
    assert narrow_enough(many, 0.015, confidence=0.95, seed=0)


@pytest.mark.parametrize(("candidate", "baseline"), [([1, 2], [1]), ([0], [1]), ([1], [-1]), ([1, 0], [1, 1])])
def test_a_failed_measurement_never_becomes_a_number(candidate: list[int], baseline: list[int]) -> None:
    with pytest.raises(ValueError, match=r"rounds|positive"):
        log_ratios(candidate, baseline)


@pytest.mark.parametrize("cases", [[], [[]], [[1.0], []], [[math.nan]], [[math.inf]]])
def test_nothing_and_non_numbers_have_no_estimate(cases: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"at least one|finite"):
        estimate(cases)


def test_comparisons_of_two_baselines_are_refused() -> None:
    with pytest.raises(ValueError, match="exactly one baseline"):
        speedup([comparison("a", [1], [1]), comparison("a", [1], [1], "initial")])
    with pytest.raises(ValueError, match="exactly one baseline"):
        speedup([])


def test_medians() -> None:
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
    with pytest.raises(ValueError, match="no median"):
        median([])
