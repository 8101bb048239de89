"""Laws of the fleet machine, one exchange at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kfd.base.digest import digest_of
from kfd.base.failure import Bug, NotFound
from kfd.base.ids import JobId, SessionId, SlotName, WorkerName
from kfd.base.instant import SECOND
from kfd.base.work import (
    BuildResult,
    Incident,
    IncidentCode,
    LeaseRef,
    Report,
    Requirement,
    RunResult,
    SlotKind,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd.core.fleet.machine import Fleet
from kfd.core.fleet.model import (
    Fact,
    FinishedJob,
    FleetPolicy,
    IdleState,
    Job,
    JobSettled,
    JobState,
    RegisterStatus,
    SaveJob,
    SlotOffer,
    StartDirective,
    StopDirective,
    SyncStatus,
)
from kfd.testing.fleetkit import (
    OK,
    RUN_DETAIL,
    RUN_OK,
    Peer,
    build_job,
    incident,
    registration,
    run_job,
    stopped,
    verdict,
)

BOOT = b"boot-one"


@pytest.fixture
def peer() -> Peer:
    return Peer(Fleet(FleetPolicy(), BOOT))


def up(peer: Peer, *workers: str, run: int = 0, build: int = 1) -> None:
    for worker in workers:
        nonce = f"nonce-{worker}".encode()
        assert peer.register(registration(worker, nonce=nonce, run=run, build=build), 0).status is RegisterStatus.OK


def settled(peer: Peer) -> list[JobSettled]:
    return [output for output in peer.outputs if isinstance(output, JobSettled)]


def facts(peer: Peer, kind: str) -> list[Fact]:
    return [output for output in peer.outputs if isinstance(output, Fact) and output.kind == kind]


def started(peer: Peer, worker: str, slot: str, now: int, job: Job | None = None) -> LeaseRef:
    """Queue a job, let the slot take it and report it running."""
    if job is not None:
        peer.take(peer.fleet.enqueue(job, now))
    lease = peer.started(peer.idle(worker, slot, now))
    peer.running(worker, slot, lease, now)
    return lease


class TestReconciliation:
    def test_a_sync_of_an_unknown_session_must_register(self, peer: Peer) -> None:
        up(peer, "w1")
        report = replace(peer.report("w1", "b0", IdleState()), session=SessionId("nobody"))
        assert peer.answer(peer.send(report, 0)).status is SyncStatus.REREGISTER

    def test_a_sync_of_an_unknown_slot_must_register(self, peer: Peer) -> None:
        up(peer, "w1")
        assert peer.answer(peer.idle("w1", "b7", 0)).status is SyncStatus.REREGISTER

    def test_a_sync_with_another_boot_id_has_no_effect(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.take(peer.fleet.enqueue(build_job(), 0))
        answer = peer.answer(peer.send(peer.report("w1", "b0", IdleState(), boot=b"older"), 0))
        assert (answer.status, answer.boot, answer.directive) == (SyncStatus.RETRY, BOOT, None)
        assert peer.fleet.queue_view(0).queued_builds == 1

    def test_an_overtaken_sync_has_no_effect(self, peer: Peer) -> None:
        up(peer, "w1")
        late = peer.report("w1", "b0", IdleState())
        lease = started(peer, "w1", "b0", 0, build_job())
        assert peer.answer(peer.send(late, 0)).status is SyncStatus.SUPERSEDED
        assert peer.fleet.leases.entries[lease.job].slot is not None

    def test_a_newer_sync_releases_the_older_call_of_its_slot(self, peer: Peer) -> None:
        up(peer, "w1")
        first, second = peer.idle("w1", "b0", 0), peer.idle("w1", "b0", 1)
        assert peer.answer(first).status is SyncStatus.SUPERSEDED
        assert second not in peer.answers

    def test_an_idle_slot_waits_and_is_given_the_next_job_at_once(self, peer: Peer) -> None:
        up(peer, "w1")
        call = peer.idle("w1", "b0", 0)
        assert call not in peer.answers
        outputs = peer.take(peer.fleet.enqueue(build_job(), 3 * SECOND))
        directive = peer.answer(call).directive
        assert isinstance(directive, StartDirective)
        assert directive.held == 3 * SECOND
        assert directive.lease == LeaseRef(job=JobId("c1-1.build"), attempt=1)
        saves = [output.job for output in outputs if isinstance(output, SaveJob)]
        assert [(job.state, job.worker, job.slot) for job in saves] == [(JobState.LEASED, "w1", "b0")]

    def test_a_save_precedes_the_reply_that_tells_of_it(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.idle("w1", "b0", 0)
        kinds = [type(output).__name__ for output in peer.take(peer.fleet.enqueue(build_job(), 0))]
        assert kinds.index("SaveJob") < kinds.index("Reply")

    def test_an_idle_call_is_answered_with_nothing_when_its_hold_ends(self, peer: Peer) -> None:
        up(peer, "w1")
        call = peer.idle("w1", "b0", 0)
        peer.tick(20 * SECOND - 1)
        assert call not in peer.answers
        peer.tick(20 * SECOND)
        assert (peer.answer(call).status, peer.answer(call).directive) == (SyncStatus.OK, None)

    def test_a_busy_call_is_answered_when_the_busy_hold_ends(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        call = peer.running("w1", "b0", lease, SECOND)
        peer.tick(6 * SECOND)
        assert peer.answer(call).directive is None

    @pytest.mark.parametrize(("accepting", "not_ready"), [(False, ""), (True, "quiet")])
    def test_a_slot_that_is_not_ready_is_given_nothing(self, peer: Peer, accepting: bool, not_ready: str) -> None:
        up(peer, "w1")
        call = peer.idle("w1", "b0", 0, accepting=accepting, not_ready=not_ready)
        peer.take(peer.fleet.enqueue(build_job(), 0))
        assert call not in peer.answers

    def test_a_start_whose_answer_was_lost_is_offered_again_under_the_same_lease(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.take(peer.fleet.enqueue(build_job(), 0))
        leases = {peer.started(peer.idle("w1", "b0", n * SECOND)) for n in range(3)}
        assert leases == {LeaseRef(job=JobId("c1-1.build"), attempt=1)}

    def test_a_start_that_is_never_begun_goes_elsewhere(self, peer: Peer) -> None:
        up(peer, "w1", "w2")
        peer.take(peer.fleet.enqueue(build_job(), 0))
        for n in range(3):
            peer.started(peer.idle("w1", "b0", n))
        fourth = peer.idle("w1", "b0", 4)
        assert fourth not in peer.answers
        assert peer.started(peer.idle("w2", "b0", 5)).attempt == 2

    def test_an_offered_job_goes_back_uncharged_when_the_slot_is_no_longer_ready(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.take(peer.fleet.enqueue(build_job(), 0))
        peer.started(peer.idle("w1", "b0", 0))
        peer.idle("w1", "b0", 1, not_ready="quiet")
        job = peer.fleet.leases.entries[JobId("c1-1.build")].job
        assert (job.state, job.incidents, job.agent_losses) == (JobState.QUEUED, 0, 0)

    def test_an_idle_report_of_an_active_lease_loses_the_attempt(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        again = peer.started(peer.idle("w1", "b0", 1))
        assert again == LeaseRef(job=lease.job, attempt=2)
        assert facts(peer, "protocol.broken")
        assert peer.fleet.leases.entries[lease.job].job.incidents == 1

    def test_running_without_a_lease_is_told_to_stop_once_a_second(self, peer: Peer) -> None:
        up(peer, "w1")
        zombie = LeaseRef(job=JobId("c9-9.build"), attempt=4)
        first = peer.answer(peer.running("w1", "b0", zombie, 0)).directive
        assert first == StopDirective(lease=zombie, reason="unknown_lease")
        again = peer.running("w1", "b0", zombie, SECOND // 10)
        assert again not in peer.answers
        peer.tick(SECOND)
        assert peer.answer(again).directive == first

    def test_running_an_older_attempt_is_told_to_stop(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        older = LeaseRef(job=lease.job, attempt=lease.attempt + 1)
        assert isinstance(peer.answer(peer.running("w1", "b0", older, 1)).directive, StopDirective)

    def test_a_finished_job_is_acknowledged_and_the_next_one_rides_along(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.take(peer.fleet.enqueue(build_job("c1-2.build"), 1))
        answer = peer.answer(peer.finished("w1", "b0", lease, OK, 2))
        assert answer.acknowledged == lease
        assert isinstance(answer.directive, StartDirective)
        assert answer.directive.lease.job == "c1-2.build"
        assert [(done.job.id, done.job.state) for done in settled(peer)] == [(lease.job, JobState.SETTLED)]

    def test_a_lost_acknowledgement_is_repeated_and_has_one_effect(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        for now in (1, 2, 3):
            assert peer.answer(peer.finished("w1", "b0", lease, OK, now)).acknowledged == lease
        assert len(settled(peer)) == 1
        assert len(facts(peer, "report.late")) == 2

    def test_a_report_of_an_unknown_job_is_acknowledged_and_kept_as_evidence(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = LeaseRef(job=JobId("c9-9.run"), attempt=1)
        assert peer.answer(peer.finished("w1", "b0", lease, OK, 0)).acknowledged == lease
        assert [dict(fact.body)["outcome"] for fact in facts(peer, "report.late")] == ["ok"]

    def test_settled_jobs_are_forgotten(self, peer: Peer) -> None:
        up(peer, "w1")
        for n in range(50):
            lease = started(peer, "w1", "b0", n, build_job(f"c{n}-1.build"))
            peer.finished("w1", "b0", lease, OK, n, accepting=False)
        assert not peer.fleet.leases.entries
        assert not peer.fleet.leases.placement.lines
        assert not peer.fleet.leases.placement.retries


class TestLeases:
    def test_an_unrenewed_lease_runs_out_after_the_ttl_and_not_before(self, peer: Peer) -> None:
        up(peer, "w1", "w2")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.running("w1", "b0", lease, 7 * SECOND)
        waiting = peer.idle("w2", "b0", 26 * SECOND)
        peer.tick(27 * SECOND - 1)
        assert waiting not in peer.answers
        peer.tick(27 * SECOND)
        assert peer.started(waiting) == LeaseRef(job=lease.job, attempt=2)

    def test_a_late_result_counts_while_the_job_waits_again(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.tick(40 * SECOND)
        assert peer.answer(peer.finished("w1", "b0", lease, OK, 41 * SECOND)).acknowledged == lease
        assert [done.job.id for done in settled(peer)] == [lease.job]
        assert peer.fleet.queue_view(0).queued_builds == 0

    def test_a_late_result_is_evidence_once_the_job_was_granted_again(self, peer: Peer) -> None:
        up(peer, "w1", "w2")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.tick(40 * SECOND)
        newer = peer.started(peer.idle("w2", "b0", 40 * SECOND))
        peer.finished("w1", "b0", lease, OK, 41 * SECOND)
        assert not settled(peer)
        peer.finished("w2", "b0", newer, verdict(VerdictCode.INCORRECT), 42 * SECOND)
        assert [done.report.outcome for done in settled(peer)] == [Verdict(code=VerdictCode.INCORRECT)]

    def test_a_late_result_of_a_worker_that_never_held_the_lease_is_evidence(self, peer: Peer) -> None:
        up(peer, "w1", "w2")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.tick(40 * SECOND)
        peer.finished("w2", "b0", lease, OK, 41 * SECOND, accepting=False)
        assert not settled(peer)

    def test_late_incidents_never_become_verdicts(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.tick(40 * SECOND)
        peer.finished("w1", "b0", lease, incident(), 41 * SECOND, accepting=False)
        assert not settled(peer)
        assert peer.fleet.queue_view(0).queued_builds == 1

    def test_three_incidents_settle_a_job_with_the_incident(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.take(peer.fleet.enqueue(build_job(), 0))
        for n in range(3):
            lease = started(peer, "w1", "b0", n)
            assert lease.attempt == n + 1
            peer.finished("w1", "b0", lease, incident(text=f"no {n}"), n, accepting=False)
        (done,) = settled(peer)
        assert done.report.outcome == Incident(code=IncidentCode.DEVICE, text="no 2")

    def test_two_losses_of_the_agent_settle_a_job_as_crashing_workers(self, peer: Peer) -> None:
        up(peer, "w1")
        started(peer, "w1", "b0", 0, build_job())
        peer.register(registration("w1", nonce=b"second-life"), 1)
        peer.seqs.clear()
        started(peer, "w1", "b0", 2)
        peer.register(registration("w1", nonce=b"third-life"), 3)
        (done,) = settled(peer)
        assert isinstance(done.report.outcome, Verdict)
        assert done.report.outcome.code is VerdictCode.RUNTIME_ERROR
        assert "crashes workers" in done.report.outcome.text

    def test_a_network_that_breaks_twice_does_not_blame_the_candidate(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.take(peer.fleet.enqueue(build_job(), 0))
        for n in range(2):
            lease = started(peer, "w1", "b0", n * 100 * SECOND)
            peer.tick((n * 100 + 50) * SECOND)
            peer.finished("w1", "b0", lease, stopped("silence"), (n * 100 + 60) * SECOND, accepting=False)
        job = peer.fleet.leases.entries[JobId("c1-1.build")].job
        assert (job.incidents, job.agent_losses) == (2, 0)

    def test_leases_that_never_began_do_not_blame_the_candidate(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.take(peer.fleet.enqueue(build_job(), 0))
        peer.started(peer.idle("w1", "b0", 0))
        peer.register(registration("w1", nonce=b"second-life"), 1)
        job = peer.fleet.leases.entries[JobId("c1-1.build")].job
        assert (job.incidents, job.agent_losses) == (1, 0)

    def test_suspects_run_one_at_a_time_on_a_worker(self, peer: Peer) -> None:
        up(peer, "w1", build=2)
        for n in (1, 2):
            started(peer, "w1", f"b{n - 1}", 0, build_job(f"c{n}-1.build"))
        peer.register(registration("w1", nonce=b"second-life", build=2), 1)
        peer.seqs.clear()
        first, second = peer.idle("w1", "b0", 2), peer.idle("w1", "b1", 2)
        lease = peer.started(first)
        assert second not in peer.answers
        peer.running("w1", "b0", lease, 3)
        peer.finished("w1", "b0", lease, OK, 4, accepting=False)
        peer.tick(3 * SECOND)
        assert peer.started(second).attempt == 2

    def test_an_orderly_leave_loses_leases_without_blame(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        call = peer.call()
        peer.take(peer.fleet.leave(call, peer.sessions["w1"], "bye", 1))
        assert peer.answers[call] is None
        job = peer.fleet.leases.entries[lease.job].job
        assert (job.state, job.incidents, job.agent_losses) == (JobState.QUEUED, 0, 0)

    def test_attempts_that_nobody_is_charged_for_are_bounded(self, peer: Peer) -> None:
        peer.take(peer.fleet.enqueue(build_job(), 0))
        for n in range(FleetPolicy().attempt_limit):
            peer.register(registration("w1", nonce=f"nonce-{n:03}".encode()), n)
            peer.seqs.clear()
            assert not settled(peer)
            lease = started(peer, "w1", "b0", n)
            peer.finished("w1", "b0", lease, stopped("restarting"), n, accepting=False)
        assert isinstance(settled(peer)[0].report.outcome, Incident)

    @pytest.mark.parametrize(
        ("job", "report"),
        [
            (build_job(), Report(outcome=Verdict(code=VerdictCode.OK))),
            (build_job(), Report(outcome=Verdict(code=VerdictCode.OK), detail=BuildResult())),
            (build_job(), Report(outcome=Verdict(code=VerdictCode.OK), detail=RunResult())),
            (run_job(), Report(outcome=Verdict(code=VerdictCode.OK), detail=RunResult())),
            (run_job(), replace(RUN_OK, detail=replace(RUN_DETAIL, ran=digest_of(b"other")))),
            (run_job(), Report(outcome=Verdict(code=VerdictCode.INCORRECT), detail=BuildResult())),
        ],
    )
    def test_a_verdict_that_does_not_fit_its_job_is_an_incident(self, peer: Peer, job: Job, report: Report) -> None:
        up(peer, "w1", run=1)
        slot = "r0" if job.id.endswith("run") else "b0"
        lease = started(peer, "w1", slot, 0, job)
        peer.finished("w1", slot, lease, report, 1, accepting=False)
        assert not settled(peer)
        assert peer.fleet.leases.entries[lease.job].job.incidents == 1

    def test_a_retry_prefers_another_worker_for_one_ttl(self, peer: Peer) -> None:
        up(peer, "w1", "w2")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.finished("w1", "b0", lease, incident(), SECOND, accepting=False)
        same = peer.idle("w1", "b0", 2 * SECOND)
        assert same not in peer.answers
        other = peer.idle("w2", "b0", 3 * SECOND)
        assert peer.started(other) == LeaseRef(job=lease.job, attempt=2)

    def test_a_retry_does_not_wait_for_ever_for_another_worker(self, peer: Peer) -> None:
        up(peer, "w1", "w2")
        busy = started(peer, "w2", "b0", 0, build_job("c2-1.build"))
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.finished("w1", "b0", lease, incident(), SECOND, accepting=False)
        same = peer.idle("w1", "b0", 2 * SECOND)
        for n in range(3, 30):
            peer.running("w2", "b0", busy, n * SECOND)
            peer.tick(n * SECOND)
            if peer.answers.get(same):
                break
        assert 20 <= n <= 22
        answered = peer.answer(same).directive
        if answered is None:
            same = peer.idle("w1", "b0", n * SECOND)
        assert peer.started(same).attempt == 2

    def test_a_retry_goes_to_the_same_worker_at_once_when_there_is_no_other(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        assert isinstance(peer.answer(peer.finished("w1", "b0", lease, incident(), 1)).directive, StartDirective)


class TestCancel:
    def test_a_queued_job_settles_at_once(self, peer: Peer) -> None:
        peer.take(peer.fleet.enqueue(build_job(), 0))
        peer.take(peer.fleet.cancel(JobId("c1-1.build"), "over", 1))
        (done,) = settled(peer)
        assert done.report == Report(outcome=Stopped(reason="over"))
        assert done.job.cancelled

    def test_a_running_job_is_stopped_through_the_standing_call(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        call = peer.running("w1", "b0", lease, 1)
        peer.take(peer.fleet.cancel(lease.job, "over", 2))
        assert peer.answer(call).directive == StopDirective(lease=lease, reason="over")
        assert not settled(peer)
        peer.finished("w1", "b0", lease, stopped("over"), 3)
        assert settled(peer)[0].report.outcome == Stopped(reason="over")

    def test_an_offered_job_that_never_began_settles_when_the_slot_says_idle(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.take(peer.fleet.enqueue(build_job(), 0))
        lease = peer.started(peer.idle("w1", "b0", 0))
        peer.take(peer.fleet.cancel(lease.job, "over", 1))
        call = peer.idle("w1", "b0", 2)
        assert call not in peer.answers
        assert settled(peer)[0].report.outcome == Stopped(reason="over")

    @pytest.mark.parametrize("loss", ["ttl", "restart", "leave", "incident"])
    def test_a_cancelled_job_is_never_granted_again(self, peer: Peer, loss: str) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.take(peer.fleet.cancel(lease.job, "over", 1))
        if loss == "ttl":
            peer.tick(30 * SECOND)
        elif loss == "restart":
            peer.register(registration("w1", nonce=b"second-life"), 2)
        elif loss == "leave":
            peer.take(peer.fleet.leave(peer.call(), peer.sessions["w1"], "bye", 2))
        else:
            peer.finished("w1", "b0", lease, incident(), 2)
        assert [done.report.outcome for done in settled(peer)] == [Stopped(reason="over")]
        assert not peer.fleet.leases.entries

    def test_a_verdict_that_crosses_the_cancel_is_kept(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.take(peer.fleet.cancel(lease.job, "over", 1))
        peer.finished("w1", "b0", lease, OK, 2)
        (done,) = settled(peer)
        assert done.report is OK
        assert done.job.cancelled

    def test_cancelling_what_is_settled_or_cancelled_changes_nothing(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.take(peer.fleet.cancel(lease.job, "over", 1))
        assert peer.take(peer.fleet.cancel(lease.job, "again", 1)) == []
        assert peer.take(peer.fleet.cancel(JobId("c7-7.run"), "what", 1)) == []


class TestSessions:
    def test_registering_again_with_the_same_nonce_keeps_session_and_leases(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        session = peer.sessions["w1"]
        assert peer.register(registration("w1", nonce=b"nonce-w1"), 1).session == session
        assert peer.running("w1", "b0", lease, 2) not in peer.answers

    def test_a_new_nonce_ends_the_old_session_at_once(self, peer: Peer) -> None:
        up(peer, "w1", "w2")
        started(peer, "w1", "b0", 0, build_job())
        parked = peer.idle("w2", "b0", 0)
        old = peer.report("w1", "b0", IdleState())
        peer.register(registration("w1", nonce=b"second-life"), 1)
        assert peer.started(parked).attempt == 2
        assert peer.answer(peer.send(old, 2)).status is SyncStatus.REREGISTER

    def test_a_late_registration_of_a_past_life_is_refused(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.register(registration("w1", nonce=b"second-life"), 1)
        answer = peer.register(registration("w1", nonce=b"nonce-w1"), 2)
        assert answer.status is RegisterStatus.NAME_IN_USE
        peer.seqs.clear()
        peer.sessions["w1"] = peer.register(registration("w1", nonce=b"second-life"), 3).session  # type: ignore[assignment]
        assert peer.idle("w1", "b0", 4) not in peer.answers

    def test_another_machine_with_a_living_name_is_refused(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.idle("w1", "b0", 0)
        newcomer = registration("w1", nonce=b"other-life", machine="m2")
        assert peer.register(newcomer, 19 * SECOND).status is RegisterStatus.NAME_IN_USE
        assert facts(peer, "worker.refused")

    def test_another_machine_may_take_a_name_that_was_silent_for_a_ttl(self, peer: Peer) -> None:
        up(peer, "w1")
        newcomer = registration("w1", nonce=b"other-life", machine="m2")
        assert peer.register(newcomer, 21 * SECOND).status is RegisterStatus.OK

    def test_protocols_without_overlap_are_refused_with_both_ranges(self, peer: Peer) -> None:
        answer = peer.register(registration("w1", protocol=(7, 9)), 0)
        assert answer.status is RegisterStatus.WRONG_PROTOCOL
        assert "7 to 9" in answer.text
        assert peer.fleet.workers(0) == []

    def test_the_outbox_of_a_restarted_agent_settles_what_it_finished(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        outbox = [FinishedJob(lease=lease, report=OK)]
        answer = peer.register(registration("w1", nonce=b"second-life", outbox=outbox), 1)
        assert answer.acknowledged == (lease,)
        assert [done.report for done in settled(peer)] == [OK]

    def test_an_outbox_of_another_worker_does_not_settle_a_lease(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        outbox = [FinishedJob(lease=lease, report=OK)]
        assert peer.register(registration("w2", outbox=outbox), 1).acknowledged == (lease,)
        assert not settled(peer)

    def test_disconnected_is_not_dead(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        call = peer.running("w1", "b0", lease, 1)
        peer.take(peer.fleet.drop_call(call, 2))
        assert peer.running("w1", "b0", lease, 3) not in peer.answers

    def test_a_dropped_idle_call_is_given_nothing(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.take(peer.fleet.drop_call(peer.idle("w1", "b0", 0), 1))
        peer.take(peer.fleet.enqueue(build_job(), 2))
        assert peer.fleet.queue_view(2).queued_builds == 1

    def test_a_slot_that_vanishes_keeps_its_lease_until_it_runs_out(self, peer: Peer) -> None:
        up(peer, "w1", build=2)
        lease = started(peer, "w1", "b1", 0, build_job())
        peer.register(registration("w1", nonce=b"nonce-w1", build=1), SECOND)
        waiting = peer.idle("w1", "b0", 2 * SECOND)
        peer.tick(20 * SECOND - 1)
        assert waiting not in peer.answers
        peer.tick(20 * SECOND)
        assert peer.started(waiting) == LeaseRef(job=lease.job, attempt=2)

    def test_stopping_answers_every_parked_call_and_grants_nothing(self, peer: Peer) -> None:
        up(peer, "w1", "w2")
        calls = [peer.idle("w1", "b0", 0), peer.idle("w2", "b0", 0)]
        peer.take(peer.fleet.release_all(1))
        assert {peer.answer(call).status for call in calls} == {SyncStatus.RETRY}
        peer.take(peer.fleet.enqueue(build_job(), 2))
        assert peer.answer(peer.idle("w1", "b0", 3)).status is SyncStatus.RETRY
        assert peer.register(registration("w3"), 4).status is RegisterStatus.RETRY

    def test_a_drained_worker_finishes_and_is_given_nothing(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.take(peer.fleet.drain(WorkerName("w1"), "upgrade", 1))
        peer.take(peer.fleet.enqueue(build_job("c2-1.build"), 2))
        answer = peer.answer(peer.finished("w1", "b0", lease, OK, 3))
        assert (answer.directive, answer.notices) == (None, (("drain", "upgrade"),))
        waiting = peer.idle("w1", "b0", 4)
        assert waiting not in peer.answers
        peer.take(peer.fleet.undrain(WorkerName("w1"), 5))
        assert peer.started(waiting).job == "c2-1.build"

    def test_draining_survives_a_new_registration(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.take(peer.fleet.drain(WorkerName("w1"), "upgrade", 1))
        peer.register(registration("w1", nonce=b"second-life"), 2)
        peer.seqs.clear()
        peer.take(peer.fleet.enqueue(build_job(), 3))
        assert peer.idle("w1", "b0", 4) not in peer.answers

    def test_draining_a_stranger_says_so(self, peer: Peer) -> None:
        with pytest.raises(NotFound, match="w9"):
            peer.fleet.drain(WorkerName("w9"), "", 0)


class TestRestart:
    def jobs(self, peer: Peer) -> list[Job]:
        rows: dict[str, Job] = {}
        for output in peer.outputs:
            if isinstance(output, SaveJob):
                rows[output.job.id] = output.job
        return list(rows.values())

    def reborn(self, peer: Peer, now: int) -> Peer:
        after = Peer(Fleet(FleetPolicy(), b"boot-two"))
        after.take(after.fleet.load(self.jobs(peer), now))
        return after

    def test_a_running_job_is_adopted_and_never_run_twice(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        after = self.reborn(peer, 0)
        after.register(registration("w2", nonce=b"nonce-w2"), 1)
        waiting = after.idle("w2", "b0", 1)
        after.register(registration("w1", nonce=b"nonce-w1"), 30 * SECOND)
        after.tick(30 * SECOND)
        after.running("w1", "b0", lease, 31 * SECOND)
        assert after.answer(waiting).directive is None
        after.finished("w1", "b0", lease, OK, 32 * SECOND)
        assert [done.job.id for done in settled(after)] == [lease.job]

    def test_a_loaded_lease_waits_the_adoption_time_and_then_runs_elsewhere(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        after = self.reborn(peer, 0)
        after.tick(120 * SECOND - 1)
        assert after.fleet.queue_view(0).queued_builds == 0
        after.tick(120 * SECOND)
        after.register(registration("w2", nonce=b"nonce-w2"), 121 * SECOND)
        assert after.started(after.idle("w2", "b0", 121 * SECOND)) == LeaseRef(job=lease.job, attempt=2)

    def test_an_agent_that_restarted_too_loses_its_leases_at_once_and_unblamed(self, peer: Peer) -> None:
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        after = self.reborn(peer, 0)
        after.register(registration("w1", nonce=b"second-life"), 1)
        job = after.fleet.leases.entries[lease.job].job
        assert (job.state, job.incidents, job.agent_losses) == (JobState.QUEUED, 0, 0)

    def test_a_start_that_never_arrived_before_the_restart_is_offered_again(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.take(peer.fleet.enqueue(build_job(), 0))
        lease = peer.started(peer.idle("w1", "b0", 0))
        after = self.reborn(peer, 0)
        after.register(registration("w1", nonce=b"nonce-w1"), 1)
        assert after.started(after.idle("w1", "b0", 2)) == lease

    def test_a_session_of_before_the_restart_must_register(self, peer: Peer) -> None:
        up(peer, "w1")
        report = peer.report("w1", "b0", IdleState())
        after = self.reborn(peer, 0)
        assert after.answer(after.send(report, 0)).status is SyncStatus.REREGISTER

    def test_the_adoption_time_is_not_shortened_by_registering(self, peer: Peer) -> None:
        # Its answer may be lost; the agent then works on in the belief that the daemon is down.
        up(peer, "w1")
        lease = started(peer, "w1", "b0", 0, build_job())
        after = self.reborn(peer, 0)
        after.register(registration("w1", nonce=b"nonce-w1"), SECOND)
        after.tick(119 * SECOND)
        assert after.fleet.leases.entries[lease.job].job.attempt == 1
        assert after.fleet.queue_view(0).leased == 1
        after.tick(120 * SECOND)
        assert after.fleet.queue_view(0).queued_builds == 1

    def test_queued_cancelled_rows_settle_and_settled_rows_are_ignored(self) -> None:
        after = Peer(Fleet(FleetPolicy(), BOOT))
        gone = replace(build_job("c1-1.build"), cancelled=True)
        done = replace(build_job("c1-2.build"), state=JobState.SETTLED)
        after.take(after.fleet.load([gone, done, build_job("c1-3.build")], 0))
        assert [output.job.id for output in settled(after)] == ["c1-1.build"]
        assert list(after.fleet.leases.entries) == ["c1-3.build"]

    def test_a_row_that_cannot_be_is_a_bug(self) -> None:
        with pytest.raises(Bug, match="leased to nobody"):
            Fleet(FleetPolicy(), BOOT).load([replace(build_job(), state=JobState.LEASED, attempt=1)], 0)


class TestHealth:
    def fail(self, peer: Peer, name: str, now: int, code: IncidentCode = IncidentCode.DEVICE) -> None:
        lease = started(peer, "w1", "b0", now, build_job(name))
        peer.finished("w1", "b0", lease, incident(code), now, accepting=False)
        peer.take(peer.fleet.cancel(lease.job, "enough", now))

    def test_three_incidents_by_different_candidates_set_a_slot_aside(self, peer: Peer) -> None:
        up(peer, "w1")
        for n in range(3):
            self.fail(peer, f"c1-{n}.build", n)
        peer.take(peer.fleet.enqueue(build_job("c2-1.build"), 9))
        call = peer.idle("w1", "b0", 10)
        assert call not in peer.answers
        assert "set aside" in peer.fleet.could_run(build_job().spec.requirement)[0]
        (told,) = facts(peer, "slot.set_aside")
        assert (told.campaign, dict(told.body)["job"]) == ("c1", "c1-2.build")
        peer.tick(40 * SECOND)
        assert peer.answer(call).notices[0][0] == "set_aside"
        peer.register(registration("w1", nonce=b"nonce-w1"), 41 * SECOND)
        assert peer.started(peer.idle("w1", "b0", 42 * SECOND)).job == "c2-1.build"

    def test_one_bad_candidate_cannot_take_a_slot_out(self, peer: Peer) -> None:
        up(peer, "w1")
        for n in range(5):
            self.fail(peer, f"c1-1.{n}", n)
        assert peer.started(self.after(peer)).job == "c2-1.build"

    def test_a_verdict_between_them_clears_the_count(self, peer: Peer) -> None:
        up(peer, "w1")
        for n in range(4):
            self.fail(peer, f"c1-{n}.build", n, IncidentCode.TOOLCHAIN)
            lease = started(peer, "w1", "b0", n, build_job(f"c3-{n}.build"))
            peer.finished("w1", "b0", lease, verdict(VerdictCode.COMPILE_ERROR), n, accepting=False)
        assert peer.started(self.after(peer)).job == "c2-1.build"

    @pytest.mark.parametrize("code", [IncidentCode.MISSING_INPUT, IncidentCode.DISK_FULL, IncidentCode.REFERENCE])
    def test_incidents_that_say_nothing_of_the_slot_do_not_count(self, peer: Peer, code: IncidentCode) -> None:
        up(peer, "w1")
        for n in range(5):
            self.fail(peer, f"c1-{n}.build", n, code)
        assert peer.started(self.after(peer)).job == "c2-1.build"

    def after(self, peer: Peer) -> int:
        peer.take(peer.fleet.enqueue(build_job("c2-1.build"), 9))
        return peer.idle("w1", "b0", 10)


class TestPlacement:
    def take_all(self, peer: Peer, worker: str, slot: str, count: int) -> list[str]:
        order: list[str] = []
        for n in range(count):
            lease = peer.started(peer.idle(worker, slot, n))
            peer.running(worker, slot, lease, n)
            report = RUN_OK if slot.startswith("r") else OK
            peer.finished(worker, slot, lease, report, n, accepting=False)
            order.append(lease.job)
        return order

    def test_campaigns_take_turns_and_jobs_of_one_campaign_keep_their_order(self, peer: Peer) -> None:
        up(peer, "w1")
        for campaign in ("c1", "c2", "c3"):
            for n in range(3 if campaign != "c3" else 1):
                peer.take(peer.fleet.enqueue(build_job(f"{campaign}-{n}.build"), 0))
        order = [name.removesuffix(".build") for name in self.take_all(peer, "w1", "b0", 7)]
        assert order == ["c1-0", "c2-0", "c3-0", "c1-1", "c2-1", "c1-2", "c2-2"]

    def test_a_job_goes_only_where_kind_toolchain_and_target_fit(self, peer: Peer) -> None:
        up(peer, "w1", run=1)
        peer.take(peer.fleet.enqueue(build_job("c1-1.build", toolchain="cuda"), 0))
        peer.take(peer.fleet.enqueue(build_job("c1-2.build", target="sim:other"), 0))
        peer.take(peer.fleet.enqueue(run_job("c1-3.run"), 0))
        assert peer.idle("w1", "b0", 1) not in peer.answers
        assert peer.started(peer.idle("w1", "r0", 1)).job == "c1-3.run"

    def test_runs_of_one_campaign_stay_on_one_device_model(self, peer: Peer) -> None:
        peer.register(registration("w1", nonce=b"nonce-w1", run=1, device_name="H200"), 0)
        peer.register(registration("w2", nonce=b"nonce-w2", run=1, device_name="B580"), 0)
        for n in range(3):
            peer.take(peer.fleet.enqueue(run_job(f"c1-{n}.run"), 0))
        first = peer.started(peer.idle("w1", "r0", 0))
        waiting = peer.idle("w2", "r0", 1)
        assert waiting not in peer.answers
        peer.take(peer.fleet.enqueue(run_job("c2-0.run"), 2))
        assert peer.started(waiting).job == "c2-0.run"
        peer.running("w1", "r0", first, 2)
        peer.finished("w1", "r0", first, RUN_OK, 3, accepting=False)
        assert self.take_all(peer, "w1", "r0", 2) == ["c1-1.run", "c1-2.run"]

    def test_a_campaign_moves_on_when_its_device_model_is_gone_for_a_ttl(self, peer: Peer) -> None:
        peer.register(registration("w1", nonce=b"nonce-w1", run=1, device_name="H200"), 0)
        peer.register(registration("w2", nonce=b"nonce-w2", run=1, device_name="B580"), 0)
        lease = started(peer, "w1", "r0", 0, run_job("c1-0.run"))
        peer.finished("w1", "r0", lease, RUN_OK, 1, accepting=False)
        peer.take(peer.fleet.enqueue(run_job("c1-1.run"), 1))
        peer.take(peer.fleet.leave(peer.call(), peer.sessions["w1"], "bye", SECOND))
        waiting = peer.idle("w2", "r0", 2 * SECOND)
        peer.tick(20 * SECOND)
        assert waiting not in peer.answers
        peer.tick(21 * SECOND)
        assert peer.started(waiting).job == "c1-1.run"
        assert facts(peer, "device.gone")

    def test_bonds_survive_a_restart_when_they_are_given_back(self, peer: Peer) -> None:
        peer.register(registration("w1", nonce=b"nonce-w1", run=1), 0)
        started(peer, "w1", "r0", 0, run_job("c1-0.run"))
        after = Peer(Fleet(FleetPolicy(), b"boot-two"))
        after.take(after.fleet.load([run_job("c1-1.run")], 0, peer.fleet.bonds()))
        after.register(registration("w2", nonce=b"nonce-w2", run=1, device_name="B580"), 1)
        assert after.idle("w2", "r0", 2) not in after.answers
        after.register(registration("w1", nonce=b"nonce-w1", run=1), 3)
        assert after.started(after.idle("w1", "r0", 4)).job == "c1-1.run"

    def test_a_forgotten_campaign_leaves_nothing_behind(self, peer: Peer) -> None:
        peer.register(registration("w1", nonce=b"nonce-w1", run=1), 0)
        started(peer, "w1", "r0", 0, run_job("c1-0.run"))
        peer.fleet.forget(run_job("c1-0.run").campaign)
        assert peer.fleet.bonds() == {}
        assert not peer.fleet.leases.placement.bound

    def test_could_run_names_the_first_mismatch_of_each_worker(self, peer: Peer) -> None:
        need = Requirement(kind=SlotKind.RUN, toolchain="sim", target="sim:device")
        assert "no worker" in peer.fleet.could_run(need)[0]
        up(peer, "w1")
        assert peer.fleet.could_run(need) == ["worker w1: has no run slot"]
        peer.register(registration("w2", run=1, nonce=b"nonce-w2", toolchain="cuda", targets=("cuda:sm_90",)), 0)
        assert "does not run sim:device with sim (it can run cuda:sm_90)" in peer.fleet.could_run(need)[1]
        peer.register(registration("w3", run=1, nonce=b"nonce-w3"), 0)
        assert peer.fleet.could_run(need) == []
        peer.take(peer.fleet.drain(WorkerName("w3"), "upgrade", 1))
        assert "drained" in peer.fleet.could_run(need)[2]

    def test_a_device_runs_what_it_says_whoever_built_it(self, peer: Peer) -> None:
        offer = SlotOffer(slot=SlotName("gpu"), kind=SlotKind.RUN, device="uuid", targets=("opencl:cpu", "sycl:cpu"))
        peer.register(replace(registration("w1", run=0, nonce=b"nonce-w1"), slots=(offer,), toolchains=()), 0)
        need = Requirement(kind=SlotKind.RUN, toolchain="sycl", target="sycl:cpu")
        assert peer.fleet.could_run(need) == []
        assert "has no build slot" in peer.fleet.could_run(replace(need, kind=SlotKind.BUILD))[0]
        assert "it can run opencl:cpu, sycl:cpu" in peer.fleet.could_run(replace(need, target="sycl:bmg"))[0]

    def test_nothing_is_granted_while_halted(self, peer: Peer) -> None:
        up(peer, "w1")
        peer.fleet.halt("the disk is full")
        call = peer.idle("w1", "b0", 0)
        peer.take(peer.fleet.enqueue(build_job(), 0))
        assert call not in peer.answers
        assert peer.fleet.queue_view(0).halted == "the disk is full"
        peer.take(peer.fleet.resume(1))
        assert peer.started(call).job == "c1-1.build"

    def test_the_queue_view_counts_and_ages(self, peer: Peer) -> None:
        peer.take(peer.fleet.enqueue(build_job(), SECOND))
        peer.take(peer.fleet.enqueue(run_job(), 3 * SECOND))
        view = peer.fleet.queue_view(4 * SECOND)
        assert (view.queued_builds, view.queued_runs, view.leased, view.oldest_queued) == (
            1,
            1,
            0,
            3 * SECOND,
        )
        assert not any(item.served for item in view.classes)

    def test_queueing_a_known_job_again_changes_nothing(self, peer: Peer) -> None:
        peer.take(peer.fleet.enqueue(build_job(), 0))
        assert peer.take(peer.fleet.enqueue(build_job(), 1)) == []

    def test_workers_are_seen_as_they_are(self, peer: Peer) -> None:
        up(peer, "w1", build=3)
        lease = started(peer, "w1", "b0", 0, build_job())
        peer.idle("w1", "b1", 0)
        peer.idle("w1", "b2", 0, not_ready="quiet")
        (seen,) = peer.fleet.workers(2 * SECOND)
        assert seen.state == "up"
        assert [(state, job, why) for _, state, job, _, why, _ in seen.slots] == [
            ("running", lease.job, ""),
            ("idle", None, ""),
            ("not_ready", None, "quiet"),
        ]
        peer.tick(20 * SECOND)
        peer.tick(45 * SECOND)
        assert peer.fleet.workers(45 * SECOND)[0].state == "down"


def test_a_grant_and_a_finish_cost_well_under_a_millisecond_with_a_long_queue() -> None:
    import time

    fleet = Fleet(FleetPolicy(), BOOT)
    peer = Peer(fleet)
    fleet.register(1, registration("w1", build=1), 0)
    session = next(iter(fleet.sessions.by_session))
    for campaign in range(50):
        for n in range(60):
            fleet.enqueue(build_job(f"c{campaign}-{n}.build"), 0)
    peer.sessions["w1"] = session
    first = fleet.sync(2, peer.report("w1", "b0", IdleState()), 0)
    lease = LeaseRef(job=JobId("c0-0.build"), attempt=1)
    assert len(first) == 2
    begin = time.process_time()
    for n in range(2000):
        report = peer.report("w1", "b0", FinishedJob(lease=lease, report=OK))
        for output in fleet.sync(n + 3, report, n):
            if isinstance(output, SaveJob) and output.job.state is JobState.LEASED:
                lease = LeaseRef(job=output.job.id, attempt=output.job.attempt)
    each = (time.process_time() - begin) / 2000
    assert len(fleet.leases.entries) == 1000
    assert each < 500e-6, f"{each * 1e6:.0f} us"
    print(f"grant and finish: {each * 1e6:.0f} us")
