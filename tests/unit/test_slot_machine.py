"""Laws of the agent's slot and session machines, on a clock made of literals."""

from __future__ import annotations

from typing import Any

import pytest

from kfd.base.digest import digest_of
from kfd.base.ids import JobId
from kfd.base.instant import MILLISECOND, SECOND
from kfd.base.work import (
    BuildSpec,
    Incident,
    IncidentCode,
    JobSpec,
    LeaseRef,
    Limits,
    Report,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd_worker.core.backoff import backoff
from kfd_worker.core.session import (
    Complain,
    Exit,
    Opened,
    RegisterAnswer,
    RegisterStatus,
    SendLeave,
    SendRegister,
    SessionMachine,
)
from kfd_worker.core.slot import Phase, SlotMachine
from kfd_worker.core.values import (
    Answer,
    DropReport,
    Finished,
    Idle,
    NeedSession,
    Output,
    Policy,
    Running,
    SaveReport,
    SendSync,
    Start,
    StartJob,
    Status,
    Stop,
    StopJob,
)

LEASE = LeaseRef(job=JobId("c1-1.build"), attempt=1)
SPEC = JobSpec(
    work=BuildSpec(task=digest_of(b""), source="", kernel_path="k", toolchain="sim", target="sim:device"),
    limits=Limits(),
)
OK = Report(outcome=Verdict(code=VerdictCode.OK))
NOTHING = Answer(status=Status.OK)


def only(outputs: list[Output], kind: type[Any]) -> Any:
    found = [output for output in outputs if isinstance(output, kind)]
    assert len(found) == 1, outputs
    return found[0]


def opened(now: int = 0) -> tuple[SlotMachine, SendSync]:
    machine = SlotMachine(Policy())
    return machine, only(machine.opened(Policy(), now, now), SendSync)


def start(held: int = 0, lease: LeaseRef = LEASE) -> Answer:
    return Answer(status=Status.OK, directive=Start(lease=lease, held=held, spec=SPEC))


def working(now: int = 0, held: int = 0) -> tuple[SlotMachine, SendSync]:
    """A machine that has begun a job at ``now``; its call under way."""
    machine, first = opened(now - held)
    outputs = machine.answered(first.seq, start(held), now)
    assert only(outputs, StartJob).lease == LEASE
    return machine, only(outputs, SendSync)


class TestCalls:
    def test_an_open_session_makes_an_idle_slot_say_so(self) -> None:
        _, sync = opened()
        assert (sync.seq, sync.accepting, sync.state) == (1, True, Idle())
        assert sync.deadline == 30 * SECOND

    def test_a_hold_that_ends_without_news_is_followed_by_the_next_call(self) -> None:
        machine, first = opened()
        outputs = machine.answered(first.seq, NOTHING, 20 * SECOND)
        assert only(outputs, SendSync).seq == 2

    def test_a_daemon_that_answers_nothing_at_once_is_not_called_in_a_hot_loop(self) -> None:
        machine, first = opened()
        assert machine.answered(first.seq, NOTHING, 1 * MILLISECOND) == []
        assert machine.next_wake() == 50 * MILLISECOND
        assert only(machine.ticked(50 * MILLISECOND), SendSync).seq == 2

    def test_answers_to_older_calls_are_ignored(self) -> None:
        machine, first = opened()
        machine.set_not_ready("quiet", 1)
        assert machine.answered(first.seq, start(), 2) == []
        assert machine.phase is Phase.IDLE

    def test_a_failed_call_is_tried_again_after_a_jittered_wait(self) -> None:
        machine, first = opened()
        assert machine.call_failed(first.seq, 0.5, SECOND, down=False) == []
        assert machine.next_wake() == SECOND + 250 * MILLISECOND
        assert only(machine.ticked(SECOND + 250 * MILLISECOND), SendSync).seq == 2

    def test_an_unknown_session_is_asked_for_anew_and_nothing_is_sent_until_it_is_there(self) -> None:
        machine, first = opened()
        assert machine.answered(first.seq, Answer(status=Status.REREGISTER), 1) == [NeedSession()]
        assert machine.ticked(99 * SECOND) == []
        assert only(machine.opened(Policy(), 100 * SECOND, 100 * SECOND), SendSync).seq == 2

    def test_a_busy_daemon_is_asked_again_later(self) -> None:
        machine, first = opened()
        assert machine.answered(first.seq, Answer(status=Status.RETRY), 1) == []
        wake = machine.next_wake()
        assert wake is not None
        assert only(machine.ticked(wake), SendSync).seq == 2


class TestBasis:
    def test_a_start_counts_from_its_sending_plus_the_hold(self) -> None:
        machine, _ = working(now=18 * SECOND, held=17 * SECOND)
        assert machine.next_wake() == (1 + 17 + 15) * SECOND

    @pytest.mark.parametrize(("transit", "begun"), [(14, True), (15, False), (40, False)])
    def test_a_start_that_was_under_way_for_too_long_is_not_begun(self, transit: int, begun: bool) -> None:
        machine, first = opened()
        outputs = machine.answered(first.seq, start(held=10 * SECOND), (10 + transit) * SECOND)
        assert any(isinstance(output, StartJob) for output in outputs) is begun
        assert isinstance(only(outputs, SendSync).state, Running if begun else Idle)

    def test_a_renewal_counts_from_its_sending(self) -> None:
        machine, second = working()
        machine.answered(second.seq, NOTHING, 5 * SECOND)
        assert machine.next_wake() == 15 * SECOND  # sent at 0, answered at 5
        third = machine._seq
        machine.answered(third, NOTHING, 11 * SECOND)
        assert machine.next_wake() == 20 * SECOND  # sent at 5

    def test_silence_stops_the_job_before_the_daemon_may_grant_it_again(self) -> None:
        machine, second = working()
        machine.call_failed(second.seq, 0.0, 14 * SECOND, down=False)
        assert not [output for output in machine.ticked(15 * SECOND - 1) if isinstance(output, StopJob)]
        assert only(machine.ticked(15 * SECOND), StopJob).lease == LEASE

    def test_a_job_stopped_by_silence_is_reported_as_an_incident(self) -> None:
        machine, _ = working()
        machine.ticked(15 * SECOND)
        saved = only(machine.ended(LEASE, Report(outcome=Stopped(reason="x"))), SaveReport)
        assert isinstance(saved.report.outcome, Incident)
        assert saved.report.outcome.code is IncidentCode.LEASE_LOST

    def test_a_verdict_that_was_first_is_reported_although_the_job_was_stopped(self) -> None:
        machine, _ = working()
        machine.ticked(15 * SECOND)
        assert only(machine.ended(LEASE, OK), SaveReport).report is OK

    def test_a_daemon_whose_process_is_down_is_waited_for(self) -> None:
        machine, second = working()
        machine.call_failed(second.seq, 0.0, 1 * SECOND, down=True)
        assert not [output for output in machine.ticked(114 * SECOND) if isinstance(output, StopJob)]
        assert only(machine.ticked(115 * SECOND), StopJob)

    def test_once_a_restarted_daemon_has_answered_silence_counts_again(self) -> None:
        machine, second = working()
        machine.call_failed(second.seq, 0.0, 1 * SECOND, down=True)
        machine.opened(Policy(), 60 * SECOND, 61 * SECOND)
        assert only(machine.ticked(75 * SECOND), StopJob)

    def test_another_process_that_answers_is_proof_that_the_first_is_gone(self) -> None:
        machine, second = working()
        answer = Answer(status=Status.REREGISTER, restarted=True)
        assert machine.answered(second.seq, answer, 14 * SECOND) == [NeedSession()]
        assert machine.ticked(100 * SECOND) == []
        assert only(machine.ticked(115 * SECOND), StopJob)

    def test_being_forgotten_by_the_same_process_is_no_such_proof(self) -> None:
        machine, second = working()
        machine.answered(second.seq, Answer(status=Status.REREGISTER), 14 * SECOND)
        assert only(machine.ticked(15 * SECOND), StopJob)


class TestJobs:
    def test_the_report_is_on_disk_before_it_is_sent(self) -> None:
        machine, _ = working()
        assert machine.ended(LEASE, OK) == [SaveReport(lease=LEASE, report=OK)]
        state = only(machine.saved(LEASE, 1), SendSync).state
        assert state == Finished(lease=LEASE, report=OK)

    def test_a_report_is_sent_until_it_is_acknowledged(self) -> None:
        machine, _ = working()
        machine.ended(LEASE, OK)
        sync = only(machine.saved(LEASE, 1), SendSync)
        again = only(machine.answered(sync.seq, NOTHING, SECOND), SendSync)
        assert isinstance(again.state, Finished)
        taken = Answer(status=Status.OK, acknowledged=LEASE)
        outputs = machine.answered(again.seq, taken, SECOND)
        assert only(outputs, DropReport).lease == LEASE
        assert only(outputs, SendSync).state == Idle()

    def test_another_acknowledgement_is_not_ours(self) -> None:
        machine, _ = working()
        machine.ended(LEASE, OK)
        sync = only(machine.saved(LEASE, 1), SendSync)
        other = Answer(status=Status.OK, acknowledged=LeaseRef(job=LEASE.job, attempt=2))
        outputs = machine.answered(sync.seq, other, SECOND)
        assert not [output for output in outputs if isinstance(output, DropReport)]

    def test_the_next_job_may_ride_on_the_acknowledgement(self) -> None:
        machine, _ = working()
        machine.ended(LEASE, OK)
        sync = only(machine.saved(LEASE, 1), SendSync)
        following = LeaseRef(job=JobId("c1-2.build"), attempt=1)
        answer = Answer(status=Status.OK, acknowledged=LEASE, directive=Start(lease=following, held=0, spec=SPEC))
        kinds = [type(output) for output in machine.answered(sync.seq, answer, 2)]
        assert kinds == [DropReport, StartJob, SendSync]
        assert machine.lease == following

    def test_an_acknowledgement_in_the_registration_frees_the_slot(self) -> None:
        machine, _ = working()
        machine.ended(LEASE, OK)
        machine.saved(LEASE, 1)
        machine.closed()
        machine.opened(Policy(), 2, 2)
        assert only(machine.acknowledged(LEASE, 3), DropReport).lease == LEASE
        assert machine.phase is Phase.IDLE

    def test_stop_ends_the_job_once_and_is_reported(self) -> None:
        machine, second = working()
        stop = Answer(status=Status.OK, directive=Stop(lease=LEASE, reason="cancelled"))
        outputs = machine.answered(second.seq, stop, SECOND)
        assert only(outputs, StopJob).reason == "cancelled"
        sync = only(outputs, SendSync)
        assert isinstance(sync.state, Running)
        assert sync.state.stage == "stopping"
        again = machine.answered(sync.seq, stop, 3 * SECOND)
        assert not [output for output in again if isinstance(output, StopJob)]

    def test_stop_for_another_lease_is_ignored(self) -> None:
        machine, second = working()
        stop = Answer(status=Status.OK, directive=Stop(lease=LeaseRef(job=LEASE.job, attempt=9), reason="x"))
        outputs = machine.answered(second.seq, stop, SECOND)
        assert not [output for output in outputs if isinstance(output, StopJob)]

    def test_a_start_while_working_is_ignored(self) -> None:
        machine, second = working()
        outputs = machine.answered(second.seq, start(lease=LeaseRef(job=JobId("x.y"), attempt=1)), SECOND)
        assert not [output for output in outputs if isinstance(output, StartJob)]

    def test_stages_are_reported_with_their_age(self) -> None:
        machine, second = working()
        machine.progressed(LEASE, "benchmark", 2 * SECOND)
        sync = only(machine.answered(second.seq, NOTHING, 5 * SECOND), SendSync)
        assert sync.state == Running(lease=LEASE, stage="benchmark", in_stage=3 * SECOND)

    def test_ends_of_jobs_that_are_not_ours_are_ignored(self) -> None:
        machine, _ = working()
        assert machine.ended(LeaseRef(job=LEASE.job, attempt=7), OK) == []
        assert machine.phase is Phase.RUNNING


class TestReadiness:
    def test_quiet_is_said_at_once_and_taken_back(self) -> None:
        machine, _ = opened()
        assert only(machine.set_not_ready("quiet", 1), SendSync).state == Idle(not_ready="quiet")
        assert machine.set_not_ready("quiet", 2) == []
        assert only(machine.set_not_ready("", 3), SendSync).state == Idle()

    def test_a_draining_slot_accepts_nothing(self) -> None:
        machine, _ = opened()
        sync = only(machine.drain(1), SendSync)
        assert not sync.accepting
        assert not [output for output in machine.answered(sync.seq, start(), 2) if isinstance(output, StartJob)]

    def test_a_draining_slot_lets_its_job_finish(self) -> None:
        machine, _ = working()
        assert machine.drain(1) == []
        assert machine.phase is Phase.RUNNING
        machine.ended(LEASE, OK)
        assert not only(machine.saved(LEASE, 2), SendSync).accepting


class TestSession:
    def answer(self, status: RegisterStatus = RegisterStatus.OK, text: str = "") -> RegisterAnswer:
        return RegisterAnswer(status=status, text=text, session="s", boot=b"b", policy=Policy(), acknowledged=())

    def test_registering_opens(self) -> None:
        machine = SessionMachine()
        assert machine.need(7) == [SendRegister()]
        assert machine.need(8) == []
        assert machine.registered(self.answer(), 0.5, 9) == [Opened(answer=self.answer(), sent=7)]
        assert machine.is_open

    def test_a_failed_registration_is_tried_again(self) -> None:
        machine = SessionMachine()
        machine.need(0)
        assert machine.register_failed(0.9, SECOND) == []
        wake = machine.next_wake()
        assert wake is not None
        assert wake > SECOND
        assert machine.ticked(wake - 1) == []
        assert machine.ticked(wake) == [SendRegister()]

    def test_a_wrong_protocol_ends_the_agent_for_good(self) -> None:
        machine = SessionMachine()
        machine.need(0)
        answer = self.answer(RegisterStatus.WRONG_PROTOCOL, "too old")
        assert machine.registered(answer, 0.5, 1) == [Exit(code=78, text="too old")]

    def test_a_name_in_use_is_complained_about_and_tried_again(self) -> None:
        machine = SessionMachine()
        machine.need(0)
        answer = self.answer(RegisterStatus.NAME_IN_USE, "taken")
        assert machine.registered(answer, 0.5, 1) == [Complain(text="taken")]
        assert machine.ticked(1 + 10 * SECOND) == [SendRegister()]

    def test_leaving_says_so_when_there_is_a_session(self) -> None:
        machine = SessionMachine()
        machine.need(0)
        machine.registered(self.answer(), 0.5, 1)
        assert machine.leave("bye") == [SendLeave(reason="bye")]
        assert machine.leave("again") == []
        assert machine.left() == [Exit(code=0)]

    def test_leaving_without_a_session_is_immediate(self) -> None:
        machine = SessionMachine()
        machine.need(0)
        assert machine.leave("bye") == [Exit(code=0)]
        assert machine.registered(self.answer(), 0.5, 1) == []


@pytest.mark.parametrize("failures", [1, 2, 5, 30, 10_000])
def test_the_wait_grows_with_full_jitter_and_has_bounds(failures: int) -> None:
    most = min(10 * SECOND, int(SECOND // 2 * 1.6 ** min(failures - 1, 20)))
    assert backoff(failures, 0.0) == 20 * MILLISECOND
    assert backoff(failures, 0.999) <= most
    assert backoff(failures, 0.5) == pytest.approx(most / 2)
