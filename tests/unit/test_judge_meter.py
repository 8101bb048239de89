"""What a box may work between its calls, and what the ledger says when it is more."""

from __future__ import annotations

import socket
from typing import cast

import pytest

from kfd.base.instant import MICROSECOND, MILLISECOND, SECOND
from kfd.base.work import Limits
from kfd_worker.judge.meter import Ledger, Meter, Reading
from kfd_worker.judge.side import Side


def at(process_ms: float, first_ms: float, now_ms: float) -> Reading:
    return Reading(round(process_ms * MILLISECOND), round(first_ms * MILLISECOND), round(now_ms * MILLISECOND))


def test_sleeping_threads_are_honest() -> None:
    ledger = Ledger(usual_ns=40 * MICROSECOND)
    for gap in range(200):
        ledger.rested(at(gap, gap, 0), at(gap + 0.04, gap + 0.04, 10))
        ledger.placed(at(gap, gap, 10), at(gap + 0.2, gap + 0.1, 10.2))
    assert ledger.excess(SECOND // 10) == ""
    assert ledger.helpers_ns == 0


def test_threads_that_work_between_calls_are_told() -> None:
    ledger = Ledger()
    for _ in range(50):
        ledger.rested(at(0, 0, 0), at(0.4, 0, 10))
    assert "its threads worked 20 ms between 100 ms" in ledger.excess(SECOND // 10)


def test_a_first_thread_that_works_between_calls_is_told() -> None:
    ledger = Ledger(usual_ns=40 * MICROSECOND)
    for _ in range(50):
        ledger.rested(at(0, 0, 0), at(0.4, 0.4, 10))
    assert "its first thread worked" in ledger.excess(SECOND // 10)


def test_helpers_of_a_box_that_is_being_placed_are_what_one_core_could_not_do() -> None:
    ledger = Ledger()
    ledger.placed(at(0, 0, 0), at(30, 1, 10))
    assert ledger.helpers_ns == 20 * MILLISECOND


def test_a_process_that_is_gone_tells_nothing() -> None:
    ledger = Ledger()
    ledger.rested(Reading(5, 5, 5), Reading(-1, -1, 9))
    ledger.placed(Reading(-1, -1, 9), Reading(-1, -1, 9))
    assert (ledger.gaps, ledger.helpers_ns, ledger.first_ns) == (0, 0, 0)


class Crowded:
    """A meter on a machine with much to do: the box uses no CPU time, and yet some of its threads are awake."""

    def __init__(self, awake: int) -> None:
        self.left = awake
        self.now_ms = 0.0

    def read(self, number: int) -> Reading:
        self.now_ms += 1
        return at(5, 1, self.now_ms)

    def awake(self, number: int) -> int:
        self.left -= 1
        return int(self.left > 0)


@pytest.mark.parametrize(("awake", "asked"), [(1, 1), (7, 7), (10_000, 100)])
def test_the_judge_waits_for_threads_that_wait_for_a_processor_but_not_for_ever(awake: int, asked: int) -> None:
    here, there = socket.socketpair()
    with here, there:
        meter = Crowded(awake)
        Side("candidate", here, Limits(), {})._settle(cast(Meter, meter))
    assert awake - meter.left == asked
