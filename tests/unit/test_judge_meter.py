"""What a box may work between its calls, and what the ledger says when it is more."""

from __future__ import annotations

from kfd.base.instant import MICROSECOND, MILLISECOND, SECOND
from kfd_worker.judge.meter import Ledger, Reading


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
