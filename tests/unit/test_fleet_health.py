"""When a slot is set aside: incidents in a row, and faults of the device that come back between good jobs."""

from __future__ import annotations

import pytest

from kfd.base.ids import JobId
from kfd.base.instant import MINUTE, SECOND
from kfd.base.work import Incident, IncidentCode, Stopped, Verdict, VerdictCode
from kfd.core.fleet.health import DEVICE_WINDOW, SlotHealth

OK = Verdict(code=VerdictCode.OK)
FAULT = Incident(code=IncidentCode.DEVICE, text="the device has fallen off the bus")
LIMIT = 3


def job(number: int) -> JobId:
    return JobId(f"c1-{number}.run")


def test_faults_of_the_device_count_though_verdicts_come_between_them() -> None:
    health = SlotHealth(LIMIT)
    for number in range(LIMIT):
        assert health.aside == ""
        assert health.note(job(number), FAULT, number * MINUTE) == (number == LIMIT - 1)
        health.note(job(100 + number), OK, number * MINUTE + SECOND)
    assert "3 faults of the device within 10 minutes by different candidates" in health.aside
    assert "fallen off the bus" in health.aside


@pytest.mark.parametrize("code", [IncidentCode.SANDBOX, IncidentCode.TOOLCHAIN, IncidentCode.INTERNAL])
def test_other_incidents_are_forgotten_at_the_next_verdict(code: IncidentCode) -> None:
    health = SlotHealth(LIMIT)
    for number in range(2 * LIMIT):
        assert not health.note(job(number), Incident(code=code), number)
        if number % (LIMIT - 1):
            health.note(job(number), OK, number)
    assert health.aside == ""


def test_faults_that_lie_further_apart_than_the_window_are_forgotten() -> None:
    health = SlotHealth(LIMIT)
    for number in range(10):
        at = number * (DEVICE_WINDOW // 2 + 1)
        assert not health.note(job(number), FAULT, at)
        health.note(job(number), OK, at)
    assert health.note(job(50), FAULT, 9 * (DEVICE_WINDOW // 2 + 1))
    assert len(health.device_faults) == LIMIT


def test_one_candidate_cannot_take_a_device_out_however_often_it_fails() -> None:
    health = SlotHealth(LIMIT)
    for number in range(50):
        assert not health.note(job(1), FAULT, number)
        assert not health.note(JobId("c1-1.build"), FAULT, number)
    assert len(health.device_faults) == 1


def test_incidents_of_all_kinds_in_a_row_count_together() -> None:
    health = SlotHealth(LIMIT)
    assert not health.note(job(1), FAULT, 1)
    assert not health.note(job(2), Incident(code=IncidentCode.SANDBOX), 2)
    assert health.note(job(3), FAULT, 3)
    assert "3 incidents in a row" in health.aside
    assert not health.note(job(4), FAULT, 4), "it is set aside once"


def test_what_does_not_speak_of_the_slot_counts_nowhere() -> None:
    health = SlotHealth(LIMIT)
    for number in range(9):
        assert not health.note(job(number), Incident(code=IncidentCode.LEASE_LOST), number)
        assert not health.note(job(number), Stopped(reason="cancelled"), number)
    assert not health.candidates
    assert not health.device_faults


def test_a_slot_that_registers_afresh_is_trusted() -> None:
    health = SlotHealth(LIMIT)
    for number in range(LIMIT):
        health.note(job(number), FAULT, number)
    assert health.aside
    health.trust()
    assert (health.aside, health.last) == ("", "")
    assert not health.note(job(9), FAULT, LIMIT)
