"""How long an agent waits before it offers again what the daemon has set aside."""

from __future__ import annotations

from kfd.base.instant import MINUTE
from kfd_worker.core.rest import Rest

HOUR = 60 * MINUTE


def rested(rest: Rest, now: int) -> tuple[int, int]:
    """Length of a rest that begins now, in minutes, and the moment at which it is over."""
    span = rest.set_aside(now)
    assert span is not None
    assert rest.next_wake() == now + span
    assert not rest.over(now + span - 1)
    assert rest.over(now + span)
    return span // MINUTE, now + span


def test_a_fault_that_comes_back_is_given_longer_and_longer_but_never_for_ever() -> None:
    rest, now, spans = Rest(), 0, []
    for _ in range(6):
        span, now = rested(rest, now + MINUTE)
        spans.append(span)
    assert spans == [1, 5, 30, 60, 60, 60]


def test_a_fault_after_hours_of_good_work_is_the_first_one_again() -> None:
    rest = Rest()
    _, now = rested(rest, 0)
    span, now = rested(rest, now + 2 * HOUR - 1)
    assert span == 5
    span, _ = rested(rest, now + 2 * HOUR)
    assert span == 1


def test_one_rest_serves_all_slots_that_are_set_aside_meanwhile() -> None:
    rest = Rest()
    assert rest.set_aside(0) == MINUTE
    assert rest.set_aside(MINUTE // 2) is None
    assert rest.over(MINUTE)
    assert not rest.over(MINUTE)
    assert rest.next_wake() is None


def test_nothing_is_over_that_has_not_begun() -> None:
    assert not Rest().over(HOUR)
    assert Rest().next_wake() is None
