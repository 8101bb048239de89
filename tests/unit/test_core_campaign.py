"""Laws of campaigns, on the real engine with a scripted fleet and generator."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from kfd.base.evidence import Evidence, to_fact
from kfd.base.ids import CandidateId
from kfd.base.instant import MINUTE, SECOND
from kfd.base.work import AdmitSpec, BuildResult, BuildSpec, Incident, IncidentCode, Report, RunSpec, VerdictCode
from kfd.core.campaign.state import CampaignSpec, CampaignState
from kfd.core.commands import DraftRequest, StartDraft
from kfd.core.events import (
    CampaignCancelled,
    CampaignPaused,
    CampaignResumed,
    DraftEvent,
    DraftFaulted,
    DraftMissed,
    DraftRejected,
    SpaceChanged,
)
from kfd.core.fleet.model import Fact, Job
from kfd.testing.simulation import Simulation, arrived, drafted, report_for, sim_spec

INITIAL = drafted("initial")


def answer(request: DraftRequest) -> DraftEvent:
    cell = (request.ordinal % 4, request.ordinal // 4 % 4, 0)
    return arrived(request, f"kernel {request.ordinal}", cell)


def judge(job: Job) -> Report:
    if is_admission(job):
        return report_for(job, VerdictCode.OK)
    seed = int(hashlib.sha256(job.id.rpartition(".")[0].encode()).hexdigest(), 16)
    if isinstance(job.spec.work, BuildSpec):
        code = VerdictCode.COMPILE_ERROR if seed % 5 == 0 and not job.id.endswith("-0.build") else VerdictCode.OK
        return report_for(job, code)
    if job.id.split(".")[0].endswith("-0"):
        return report_for(job, VerdictCode.OK, 1.0)
    code = VerdictCode.INCORRECT if seed % 5 == 1 else VerdictCode.OK
    return report_for(job, code, 0.5 + (seed % 97) / 20)


def is_admission(job: Job) -> bool:
    return isinstance(job.spec.work, AdmitSpec)


def run(
    spec: CampaignSpec,
    answer: Callable[[DraftRequest], DraftEvent] = answer,
    judge: Callable[[Job], Report] = judge,
) -> Simulation:
    simulation = Simulation(answer, judge)
    simulation.submit(spec, INITIAL)
    simulation.run()
    return simulation


def facts(simulation: Simulation, kind: str) -> list[dict[str, object]]:
    return [dict(c.body) for c in simulation.commands if isinstance(c, Fact) and c.kind == kind]


def test_a_campaign_judges_its_budget_exactly_and_measures_the_winner_afresh() -> None:
    spec = sim_spec()
    simulation = run(spec)
    record = simulation.rows.records[spec.id]
    assert record.state is CampaignState.FINISHED
    assert record.reason == "budget: 20 candidates"
    assert sum(simulation.outcomes(spec.id).values()) == 21  # the initial kernel is not charged
    assert record.best is not None
    assert record.final_speedups
    assert f"{record.best}.verify1" in simulation.rows.settled


def test_the_compiled_form_decides_a_kernels_cell() -> None:
    """What the build reports goes before what the source says, in the row, in the archive and for the search."""

    def compiled(job: Job) -> Report:
        report = judge(job)
        if isinstance(report.detail, BuildResult) and report.detail.artifact is not None:
            seen = (to_fact(Evidence(global_atomics=True)),)
            report = replace(report, detail=replace(report.detail, facts=seen))
        return report

    spec = sim_spec()
    simulation = run(spec, judge=compiled)
    built = [one for one in simulation.rows.candidates.values() if one.artifact is not None]
    assert built
    assert {one.cell[2] for one in built if one.cell is not None} == {3}
    assert {cell[2] for _, cell in simulation.rows.elites} == {3}
    unbuilt = [one for one in simulation.rows.candidates.values() if one.outcome == VerdictCode.COMPILE_ERROR]
    assert {one.cell[2] for one in unbuilt if one.cell is not None} == {0}


def test_the_initial_kernel_is_measured_before_anything_is_asked() -> None:
    spec = sim_spec()
    simulation = Simulation(answer, judge)
    simulation.submit(spec, INITIAL)
    assert not simulation.drafts
    assert simulation.rows.records[spec.id].state is CampaignState.BASELINING


def test_an_initial_kernel_that_is_wrong_fails_the_campaign_with_the_reason() -> None:
    spec = sim_spec()
    simulation = run(
        spec, judge=lambda job: judge(job) if is_admission(job) else report_for(job, VerdictCode.INCORRECT)
    )
    record = simulation.rows.records[spec.id]
    assert record.state is CampaignState.FAILED
    assert "initial kernel is not correct" in record.reason


def test_a_task_that_accepts_a_wrong_answer_is_refused_with_the_reason_and_blames_nobody() -> None:
    def lenient(job: Job) -> Report:
        return report_for(job, VerdictCode.INCORRECT) if is_admission(job) else judge(job)

    for initial in (INITIAL, None):
        spec = sim_spec()
        simulation = Simulation(answer, lenient)
        simulation.submit(spec, initial)
        simulation.run()
        record = simulation.rows.records[spec.id]
        assert record.state is CampaignState.FAILED
        assert record.reason == "the task is refused: zeros would pass"
        assert not any(isinstance(command, StartDraft) for command in simulation.commands)
        assert all(c.outcome in ("ok", "cancelled") for c in simulation.rows.candidates.values())


def test_a_task_that_cannot_be_proved_is_an_incident_and_fails_the_campaign() -> None:
    def sick(job: Job) -> Report:
        return (
            Report(outcome=Incident(code=IncidentCode.REFERENCE, text="no memory")) if is_admission(job) else judge(job)
        )

    spec = sim_spec()
    simulation = run(spec, judge=sick)
    assert simulation.rows.records[spec.id].reason == "the task could not be proved (reference): no memory"


def test_validating_asks_nothing_and_ends_when_the_kernel_is_measured() -> None:
    spec = sim_spec(validate_only=True)
    simulation = run(spec)
    record = simulation.rows.records[spec.id]
    assert record.state is CampaignState.FINISHED
    assert record.reason.startswith("validated")
    assert simulation.outcomes(spec.id) == {"ok": 1}
    assert not any(isinstance(command, StartDraft) for command in simulation.commands)


def test_a_campaign_can_begin_from_nothing() -> None:
    spec = sim_spec()
    simulation = Simulation(answer, judge)
    simulation.submit(spec, None)
    simulation.run()
    assert sum(simulation.outcomes(spec.id).values()) == 20
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED


def test_the_same_key_starts_one_campaign() -> None:
    simulation = Simulation(answer, judge)
    first = simulation.submit(sim_spec(), INITIAL)
    second = simulation.submit(sim_spec("sim-2", idempotency_key="sim-1"), INITIAL)
    assert first is not None
    assert second == (first[0], first[1], True)  # type: ignore[index]


def test_names_are_numbered_and_a_taken_name_is_refused() -> None:
    simulation = Simulation(answer, judge)
    one = simulation.submit(sim_spec("a", name=""), INITIAL)
    two = simulation.submit(sim_spec("b", name=""), INITIAL)
    assert (one[1], two[1]) == ("sim-1", "sim-2")  # type: ignore[index]
    assert simulation.submit(sim_spec("c", name="sim-1"), INITIAL) is None


def test_a_duplicate_is_discarded_without_a_build() -> None:
    spec = sim_spec(budget_candidates=3)
    simulation = run(spec, answer=lambda request: arrived(request, "the same"))
    assert simulation.outcomes(spec.id)["duplicate"] == 2
    assert sum(1 for job in simulation.rows.jobs if job.endswith(".build")) == 2


def test_prose_costs_its_place_and_nothing_is_compiled() -> None:
    def prose(request: DraftRequest) -> DraftEvent:
        return DraftRejected(
            candidate=request.candidate,
            reason="no_code",
            detail="prose",
            model="m",
            input_tokens=0,
            output_tokens=0,
            texts=(),
        )

    spec = sim_spec(budget_candidates=5)
    simulation = run(spec, answer=prose)
    assert simulation.outcomes(spec.id) == {"no_code": 5, "ok": 1}
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED


def test_misses_are_events_and_end_the_campaign_without_cost() -> None:
    def missing(request: DraftRequest) -> DraftEvent:
        if request.operator == "rewrite" and request.nth == 0 and request.parent == f"{spec.id}-0":
            return arrived(request, "the only recording")
        return DraftMissed(candidate=request.candidate, text="no recording")

    spec = sim_spec()
    simulation = run(spec, answer=missing)
    record = simulation.rows.records[spec.id]
    assert record.state is CampaignState.FINISHED
    assert record.reason.startswith("nothing left to ask")
    assert sum(simulation.outcomes(spec.id).values()) == 2
    assert facts(simulation, "draft.missed")


def test_a_provider_that_is_down_fails_nothing_and_is_asked_again() -> None:
    asked: dict[str, int] = {}

    def flaky(request: DraftRequest) -> DraftEvent:
        asked[request.candidate] = asked.get(request.candidate, 0) + 1
        if asked[request.candidate] < 3:
            return DraftFaulted(candidate=request.candidate, kind="overload", text="529", retry_after=60 * SECOND)
        return answer(request)

    spec = sim_spec(budget_candidates=6)
    simulation = run(spec, answer=flaky)
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED
    assert set(asked.values()) == {3}
    assert sum(simulation.outcomes(spec.id).values()) == 7


@pytest.mark.parametrize("kill", [False, True])
def test_a_question_that_always_breaks_us_is_given_up_and_keeps_no_campaign_open(kill: bool) -> None:
    """Evidence that cannot be rendered, a source that is gone: asked again, and again, it would never end."""

    def breaks(request: DraftRequest) -> DraftEvent:
        if request.ordinal % 4:
            return answer(request)
        return DraftFaulted(candidate=request.candidate, kind="internal", text="KeyError()", retry_after=30 * SECOND)

    spec = sim_spec()
    simulation = Simulation(breaks, judge)
    simulation.submit(spec, INITIAL)
    for _ in range(30):
        simulation.step()
    if kill:
        simulation.kill_daemon()
    simulation.run()
    record = simulation.rows.records[spec.id]
    assert (record.state, record.reason, record.incidents) == (CampaignState.FINISHED, "budget: 20 candidates", 5)
    given_up = [one for one in simulation.rows.candidates.values() if one.outcome == "incident"]
    assert [one.ordinal for one in given_up] == [4, 8, 12, 16, 20]
    assert {(one.text, one.told) for one in given_up} == {("KeyError()", None)}


def test_a_fault_that_only_a_person_can_mend_pauses_and_resume_asks_again() -> None:
    is_mended = False

    def money(request: DraftRequest) -> DraftEvent:
        if not is_mended:
            return DraftFaulted(candidate=request.candidate, kind="money", text="no credit", retry_after=None)
        return answer(request)

    spec = sim_spec(budget_candidates=6)
    simulation = Simulation(money, judge)
    simulation.submit(spec, INITIAL)
    simulation.run()
    record = simulation.rows.records[spec.id]
    assert (record.state, record.reason) == (CampaignState.PAUSED, "money: no credit")
    is_mended = True
    simulation.ask(lambda call: CampaignResumed(call=call, campaign=spec.id))
    simulation.run()
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED
    assert sum(simulation.outcomes(spec.id).values()) == 7


def test_an_incident_is_never_charged_to_a_candidate() -> None:
    def sick(job: Job) -> Report:
        if job.id.startswith(f"{spec.id}-3."):
            return Report(outcome=Incident(code=IncidentCode.DEVICE, text="sick"))
        return judge(job)

    spec = sim_spec()
    simulation = run(spec, judge=sick)
    third = next(c for c in simulation.rows.candidates.values() if c.ordinal == 3)
    assert third.outcome == "incident"
    assert third.fitness is None
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED


def test_a_winner_that_fails_its_fresh_measurement_is_no_winner() -> None:
    def unlucky(job: Job) -> Report:
        if job.id.endswith(".verify1"):
            return report_for(job, VerdictCode.INCORRECT)
        return judge(job)

    spec = sim_spec()
    simulation = run(spec, judge=unlucky)
    demoted = facts(simulation, "candidate.demoted")
    record = simulation.rows.records[spec.id]
    assert len(demoted) == 1
    assert record.best is not None
    assert record.best != demoted[0]["candidate"]
    assert simulation.rows.candidates[demoted[0]["candidate"]].outcome == "suspect"  # type: ignore[index]
    assert record.final_speedups


def run_once(first: float, second: VerdictCode | float) -> tuple[Simulation, CampaignSpec]:
    """One candidate after the initial kernel (speedup 1); what its first and its second measurement say."""

    def measured(job: Job) -> Report:
        if job.id.split(".")[0].endswith("-0") or isinstance(job.spec.work, BuildSpec):
            return report_for(job, VerdictCode.OK, 1.0)
        if job.id.endswith(".run"):
            return report_for(job, VerdictCode.OK, first)
        return report_for(job, second) if isinstance(second, VerdictCode) else report_for(job, VerdictCode.OK, second)

    spec = sim_spec(budget_candidates=1)
    return run(spec, lambda request: arrived(request, f"kernel {request.ordinal}"), measured), spec


def test_nothing_is_displaced_before_a_second_measurement_says_so_too() -> None:
    simulation, spec = run_once(3.0, 1.01)
    candidate = next(c for c in simulation.rows.candidates.values() if c.ordinal == 1)
    assert f"{candidate.id}.confirm1" in simulation.rows.settled
    assert candidate.outcome == "ok"
    assert candidate.speedups[0].value == 1.01  # the second one counts: the first is biased upwards
    assert simulation.rows.records[spec.id].best == f"{spec.id}-0"


def test_a_confirmed_gain_takes_the_cell() -> None:
    simulation, spec = run_once(3.0, 2.5)
    assert simulation.rows.records[spec.id].best == f"{spec.id}-1"
    assert facts(simulation, "best.improved")[0]["speedup"] == 2.5


def race(over: dict[str, float]) -> tuple[Simulation, CampaignSpec, dict[str, RunSpec]]:
    """Two candidates one after the other, each faster than all before; ``over`` is how they do beside an incumbent."""
    seen: dict[str, RunSpec] = {}

    def measured(job: Job) -> Report:
        if isinstance(job.spec.work, RunSpec):
            seen[job.id] = job.spec.work
        ordinal = int(job.id.split(".")[0].rpartition("-")[2])
        return report_for(job, VerdictCode.OK, 1.0 + ordinal, over.get(job.id.partition("-")[2]))

    spec = sim_spec(budget_candidates=2, in_flight=1)
    return run(spec, lambda request: arrived(request, f"kernel {request.ordinal}"), measured), spec, seen


def test_a_win_is_confirmed_beside_whom_it_would_displace() -> None:
    simulation, spec, seen = race({"2.confirm1": 1.4})
    first, second = seen[f"{spec.id}-1.confirm1"], seen[f"{spec.id}-2.confirm1"]
    assert first.incumbent_artifact is None  # the initial kernel is there already
    assert second.incumbent_artifact == first.artifact
    assert seen[f"{spec.id}-2.run"].incumbent_artifact is None
    assert simulation.rows.records[spec.id].best == f"{spec.id}-2"


def test_who_does_not_win_beside_the_incumbent_displaces_nobody_whatever_the_baseline_says() -> None:
    simulation, spec, _ = race({"2.confirm1": 1.01})
    assert simulation.rows.candidates[CandidateId(f"{spec.id}-2")].outcome == "ok"
    assert simulation.rows.records[spec.id].best == f"{spec.id}-1"


def test_a_candidate_that_is_right_once_and_wrong_then_is_suspect() -> None:
    simulation, spec = run_once(3.0, VerdictCode.INCORRECT)
    candidate = next(c for c in simulation.rows.candidates.values() if c.ordinal == 1)
    assert candidate.outcome == "suspect"
    assert candidate.fitness is None
    assert simulation.rows.records[spec.id].best == f"{spec.id}-0"


def test_what_would_displace_nothing_is_measured_once() -> None:
    simulation, spec = run_once(0.5, 9.0)
    assert f"{spec.id}-1.confirm1" not in simulation.rows.settled


def test_cancel_ends_everything_at_once() -> None:
    spec = sim_spec()
    simulation = Simulation(answer, judge)
    simulation.submit(spec, INITIAL)
    for _ in range(6):
        simulation.step()
    simulation.ask(lambda call: CampaignCancelled(call=call, campaign=spec.id, reason="enough"))
    assert simulation.rows.records[spec.id].state is CampaignState.CANCELLED
    assert not simulation.drafts
    assert not simulation.engine.campaigns
    assert all(not c.is_open for c in simulation.rows.candidates.values())
    simulation.run()


def test_a_paused_campaign_asks_for_nothing_and_loses_nothing() -> None:
    spec = sim_spec()
    simulation = Simulation(answer, judge)
    simulation.submit(spec, INITIAL)
    for _ in range(4):
        simulation.step()
    simulation.ask(lambda call: CampaignPaused(call=call, campaign=spec.id, reason="lunch"))
    asked = sum(isinstance(c, StartDraft) for c in simulation.commands)
    simulation.run()
    assert sum(isinstance(c, StartDraft) for c in simulation.commands) == asked
    simulation.ask(lambda call: CampaignResumed(call=call, campaign=spec.id))
    simulation.run()
    assert sum(simulation.outcomes(spec.id).values()) == 21


def test_a_full_disk_stops_new_work_and_room_brings_it_back() -> None:
    spec = sim_spec()
    simulation = Simulation(answer, judge)
    simulation.submit(spec, INITIAL)
    for _ in range(4):
        simulation.step()
    simulation.post(SpaceChanged(low=True, text="full"))
    asked = sum(isinstance(c, StartDraft) for c in simulation.commands)
    simulation.run()
    assert sum(isinstance(c, StartDraft) for c in simulation.commands) == asked
    assert simulation.rows.records[spec.id].state is CampaignState.RUNNING
    simulation.post(SpaceChanged(low=False, text="room"))
    simulation.run()
    assert sum(simulation.outcomes(spec.id).values()) == 21


def test_the_time_budget_ends_a_campaign_whose_person_never_answers() -> None:
    spec = sim_spec(budget_ns=5 * MINUTE)
    silent = Simulation(answer, judge)
    silent.submit(spec, INITIAL)
    while not silent.drafts:
        silent.step()
    silent.drafts.clear()
    silent.run()
    record = silent.rows.records[spec.id]
    assert record.state is CampaignState.FINISHED
    assert record.reason.startswith("budget: time")


def test_a_fault_of_ours_in_one_campaign_leaves_the_others_alone() -> None:
    bad, good = sim_spec("bad"), sim_spec("good")
    simulation = Simulation(answer, judge)
    simulation.submit(bad, INITIAL)
    simulation.submit(good, INITIAL)
    machine = simulation.engine.campaigns[bad.id]

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    machine._judge = broken  # type: ignore[method-assign,assignment]
    simulation.run()
    assert simulation.rows.records[bad.id].state is CampaignState.FAILED
    assert "internal fault" in simulation.rows.records[bad.id].reason
    assert simulation.rows.records[good.id].state is CampaignState.FINISHED


@pytest.mark.parametrize("seed", range(12))
def test_a_daemon_killed_at_any_moment_changes_no_count(seed: int) -> None:
    spec = sim_spec(seed=seed)
    undisturbed = run(spec)
    simulation = Simulation(answer, judge)
    simulation.submit(spec, INITIAL)
    for moment in range(60):
        simulation.step()
        if int(hashlib.sha256(f"{seed}:{moment}".encode()).hexdigest(), 16) % 4 == 0:
            simulation.kill_daemon()
    simulation.run()
    total = sum(simulation.outcomes(spec.id).values())
    assert total == sum(undisturbed.outcomes(spec.id).values()) == 21
    assert max(simulation.rows.settled.values()) == 1
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED
