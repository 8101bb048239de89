"""Laws of the sizes that nobody declared."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from kfd.tasks.spec import Case
from kfd_worker.judge.shapes import hidden_cases


def cases(*sizes: dict[str, int]) -> list[Case]:
    return [Case(name=f"c{number}", sizes=tuple(one.items()), timed=True) for number, one in enumerate(sizes)]


def area(case: Case) -> int:
    total = 4
    for _, size in case.sizes:
        total *= size
    return total


def drawn(declared: list[Case], seed: int = 0, most: int = 1 << 40) -> list[dict[str, int]]:
    return [dict(one.sizes) for one in hidden_cases(declared, random.Random(seed), area, most)]


@given(st.integers(0, 1000))
def test_drawn_sizes_lie_between_the_declared_ones_and_are_none_of_them(seed: int) -> None:
    declared = cases({"m": 3, "n": 1000}, {"m": 500, "n": 77})
    found = drawn(declared, seed)
    assert len(found) == 2
    assert found[0] != found[1]
    for one in found:
        assert 3 <= one["m"] <= 500
        assert 77 <= one["n"] <= 1000
        assert one not in [dict(case.sizes) for case in declared]


@given(st.integers(0, 1000))
def test_multiples_stay_multiples_and_powers_of_two_stay_powers(seed: int) -> None:
    for one in drawn(cases({"n": 384, "p": 64}, {"n": 1152, "p": 4096}), seed):
        assert one["n"] % 384 == 0
        assert one["p"] & (one["p"] - 1) == 0


@given(st.integers(0, 1000))
def test_what_holds_between_sizes_in_all_cases_holds_in_drawn_ones(seed: int) -> None:
    declared = cases({"n": 60, "k": 20, "g": 4}, {"n": 900, "k": 45, "g": 9}, {"n": 84, "k": 84, "g": 12})
    for one in drawn(declared, seed):
        assert one["k"] <= one["n"]
        assert one["g"] <= one["k"]


def test_equal_sizes_stay_equal() -> None:
    found = [one for seed in range(20) for one in drawn(cases({"a": 64, "b": 64}, {"a": 512, "b": 512}), seed)]
    assert found
    assert all(one["a"] == one["b"] for one in found)


def test_a_size_that_all_cases_share_is_not_free() -> None:
    assert drawn(cases({"n": 64}, {"n": 64})) == []
    assert all(one["d"] == 128 for one in drawn(cases({"n": 10, "d": 128}, {"n": 99, "d": 128})))
    assert drawn(cases({"n": 64})) == []


def test_drawn_cases_keep_to_the_bound_and_are_never_timed() -> None:
    declared = cases({"n": 10}, {"n": 1_000_000})
    for seed in range(50):
        for one in hidden_cases(declared, random.Random(seed), area, 4000):
            assert area(one) <= 4000
            assert not one.timed


def test_sizes_that_make_no_shape_are_passed_over() -> None:
    def refuse(case: Case) -> int:
        raise ValueError("no shape")

    assert hidden_cases(cases({"n": 10}, {"n": 1000}), random.Random(0), refuse, 1 << 30) == []
