"""What crosses the wire comes back the same, and what is malformed never crashes us."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.api import convert, reports
from kfd.api.v1 import common_pb2, worker_pb2
from kfd.base.digest import Digest, digest_of
from kfd.base.failure import BadInput
from kfd.base.ids import JobId
from kfd.base.work import (
    BuildResult,
    BuildSpec,
    CaseResult,
    Comparison,
    Diagnostic,
    Incident,
    IncidentCode,
    JobSpec,
    LeaseRef,
    Limits,
    MeasurementPlan,
    Report,
    Roof,
    RunResult,
    RunSpec,
    SlotKind,
    Speedup,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd.core.fleet.model import (
    FleetPolicy,
    IdleState,
    RegisterAnswer,
    RegisterStatus,
    RunningState,
    StartDirective,
    StopDirective,
    SyncAnswer,
    SyncStatus,
)
from kfd.rpc.worker_translate import (
    finished_from_pb,
    register_answer_to_pb,
    registration_from_pb,
    sync_answer_to_pb,
    sync_from_pb,
)

settings.register_profile("wire", deadline=None, max_examples=100, derandomize=True, database=None)
wire = settings.get_profile("wire")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
names = st.text("abcXYZ019._-", min_size=1, max_size=20)
digests = st.builds(digest_of, st.binary(max_size=8))
pairs = st.lists(st.tuples(texts, texts), max_size=4).map(tuple)
spans = st.integers(1, convert.INT_MAX)
limits = st.builds(
    Limits,
    wall_ns=spans,
    memory_bytes=spans,
    processes=st.integers(1, 2**32 - 1),
    output_bytes=st.integers(0, convert.INT_MAX),
    artifact_bytes=st.integers(0, convert.INT_MAX),
)
builds = st.builds(
    BuildSpec,
    task=digests,
    source=texts,
    kernel_path=names.map(lambda name: f"src/k{name}"),
    toolchain=names,
    target=names,
    flags=st.lists(texts, max_size=3).map(tuple),
    defines=pairs,
)
plans = st.builds(
    MeasurementPlan,
    min_rounds=st.integers(1, 50),
    max_rounds=st.integers(50, 1000),
    target_half_width=st.floats(0.001, 1.0),
    max_ns=spans,
    confidence=st.floats(0.01, 0.99),
)
runs = st.builds(
    RunSpec,
    task=digests,
    artifact=digests,
    initial_artifact=st.none() | digests,
    toolchain=names,
    target=names,
    seed=st.binary(min_size=1, max_size=64),
    plan=plans,
)
specs = st.builds(JobSpec, work=builds | runs, limits=limits)
outcomes = st.one_of(
    st.builds(Verdict, code=st.sampled_from(VerdictCode), text=texts),
    st.builds(
        Incident,
        code=st.sampled_from(IncidentCode),
        text=texts,
        missing=st.none() | digests,
        device_suspect=st.booleans(),
    ),
    st.builds(Stopped, reason=texts),
)
lines = st.integers(0, 2**32 - 1)
build_results = st.builds(
    BuildResult,
    artifact=st.none() | digests,
    diagnostics=st.lists(
        st.builds(Diagnostic, file=texts, line=lines, column=lines, severity=texts, text=texts), max_size=3
    ).map(tuple),
    facts=pairs,
)
finite = st.floats(allow_nan=False, allow_infinity=False)


def _comparison(case: str, baseline: str, times: list[tuple[int, int]]) -> Comparison:
    return Comparison(
        case=case,
        baseline=baseline,
        candidate_ns=tuple(ours for ours, _ in times),
        baseline_ns=tuple(theirs for _, theirs in times),
    )


def _speedup(baseline: str, numbers: list[float], rounds: int, worst: str, worst_value: float) -> Speedup:
    low, value, high = sorted(numbers)
    return Speedup(
        baseline=baseline, value=value, low=low, high=high, rounds=rounds, worst_case=worst, worst_value=worst_value
    )


positive = st.floats(1e-6, 1e6)
run_results = st.builds(
    RunResult,
    cases=st.lists(
        st.builds(CaseResult, case=texts, passed=st.booleans(), relative_l2=finite, worst=finite, detail=texts),
        max_size=3,
    ).map(tuple),
    comparisons=st.lists(
        st.builds(_comparison, texts, texts, st.lists(st.tuples(spans, spans), max_size=4)), max_size=2
    ).map(tuple),
    speedups=st.lists(
        st.builds(
            _speedup,
            texts,
            st.lists(positive, min_size=3, max_size=3),
            st.integers(0, 1000),
            texts,
            positive,
        ),
        max_size=2,
    ).map(tuple),
    ran=st.none() | digests,
    roofs=st.lists(
        st.builds(Roof, case=texts, moved_bytes=st.integers(0, convert.INT_MAX), copy_ns=spans), max_size=2
    ).map(tuple),
)
all_reports = st.builds(
    Report,
    outcome=outcomes,
    detail=st.none() | build_results | run_results,
    log_tail=texts,
    log=st.none() | digests,
    stages_ns=st.lists(st.tuples(texts, st.integers(0, convert.INT_MAX)), max_size=3).map(tuple),
    environment=pairs,
)


class TestRoundTrips:
    @wire
    @given(specs)
    def test_job_specs(self, spec: JobSpec) -> None:
        data = convert.job_spec_to_pb(spec).SerializeToString()
        assert convert.job_spec_from_pb(worker_pb2.JobSpec.FromString(data)) == spec

    @wire
    @given(all_reports)
    def test_reports(self, report: Report) -> None:
        data = reports.report_to_pb(report).SerializeToString()
        assert reports.report_from_pb(worker_pb2.Report.FromString(data)) == report

    @wire
    @given(all_reports)
    def test_bounding_a_small_report_changes_nothing(self, report: Report) -> None:
        assert reports.bound_report(report) == report

    @wire
    @given(digests)
    def test_digests(self, digest: Digest) -> None:
        assert convert.digest_from_pb(convert.digest_to_pb(digest)) == digest

    @wire
    @given(names, st.integers(1, 2**32 - 1))
    def test_leases(self, job: str, attempt: int) -> None:
        lease = LeaseRef(job=JobId(f"c{job}"), attempt=attempt)
        assert convert.lease_from_pb(convert.lease_to_pb(lease)) == lease

    @pytest.mark.parametrize("kind", list(SlotKind))
    def test_slot_kinds(self, kind: SlotKind) -> None:
        assert convert.slot_kind_from_pb(convert.slot_kind_to_pb(kind)) is kind

    @pytest.mark.parametrize(
        ("cls", "message"),
        [
            (Limits, worker_pb2.Limits),
            (BuildSpec, worker_pb2.BuildSpec),
            (RunSpec, worker_pb2.RunSpec),
            (MeasurementPlan, worker_pb2.MeasurementPlan),
            (Verdict, worker_pb2.Verdict),
            (Incident, worker_pb2.Incident),
            (Stopped, worker_pb2.Stopped),
            (Diagnostic, worker_pb2.Diagnostic),
            (BuildResult, worker_pb2.BuildResult),
            (CaseResult, worker_pb2.CaseResult),
            (Comparison, worker_pb2.Comparison),
            (Speedup, worker_pb2.Speedup),
            (RunResult, worker_pb2.RunResult),
        ],
    )
    def test_every_field_of_a_value_has_one_of_its_message(self, cls: Any, message: Any) -> None:
        renamed = {"case": "name", "stages_ns": "stages"}
        ours = {renamed.get(field.name, field.name) for field in fields(cls)}
        assert ours == set(message.DESCRIPTOR.fields_by_name)


class TestBounds:
    def test_a_huge_report_is_cut_to_what_the_wire_takes(self) -> None:
        long = "x" * 100_000
        detail = BuildResult(
            diagnostics=(Diagnostic(file=long, line=-1, column=2**40, severity=long, text=long),) * 1000,
            facts=((long, long),) * 1000,
        )
        report = Report(
            outcome=Verdict(code=VerdictCode.COMPILE_ERROR, text=long),
            detail=detail,
            log_tail=long + "end",
            stages_ns=(("build", 1),) * 1000,
            environment=((long, long),) * 1000,
        )
        message = reports.report_to_pb(reports.bound_report(report))
        assert message.ByteSize() < 2 << 20
        back = reports.report_from_pb(message)
        assert back.log_tail.endswith("end")

    def test_a_huge_run_report_is_cut_to_what_the_wire_takes(self) -> None:
        long = "x" * 100_000
        detail = RunResult(
            cases=(CaseResult(case=long, passed=True, relative_l2=0.0, worst=0.0, detail=long),) * 5000,
            comparisons=(_comparison("a", "reference", [(10**12, 10**12)] * 50_000),) * 500,
        )
        report = Report(outcome=Verdict(code=VerdictCode.OK), detail=detail)
        message = reports.report_to_pb(reports.bound_report(report))
        assert message.ByteSize() < 3 << 20
        reports.report_from_pb(message)

    @pytest.mark.parametrize(
        "message",
        [
            worker_pb2.Report(),
            worker_pb2.Report(verdict=worker_pb2.Verdict()),
            worker_pb2.Report(verdict=worker_pb2.Verdict(code=77)),  # type: ignore[arg-type]
            worker_pb2.Report(incident=worker_pb2.Incident(code=99)),  # type: ignore[arg-type]
            worker_pb2.Report(verdict=worker_pb2.Verdict(code=8, text="x" * 20_000)),  # type: ignore[arg-type]
            worker_pb2.Report(stopped=worker_pb2.Stopped(), log=common_pb2.Digest(hash="ABC", size=1)),
            worker_pb2.Report(stopped=worker_pb2.Stopped(), log_tail="x" * 70_000),
            worker_pb2.Report(stopped=worker_pb2.Stopped(), stages=[worker_pb2.StageTime(ns=2**63)]),
        ],
    )
    def test_a_malformed_report_becomes_an_incident(self, message: worker_pb2.Report) -> None:
        with pytest.raises(BadInput):
            reports.report_from_pb(message)
        lease = common_pb2.LeaseRef(job="c1-1.run", attempt=1)
        finished = finished_from_pb(worker_pb2.FinishedJob(lease=lease, report=message))
        assert isinstance(finished.report.outcome, Incident)
        assert finished.report.outcome.code is IncidentCode.INTERNAL

    @wire
    @given(st.binary(max_size=200))
    def test_noise_is_read_or_refused_and_never_crashes(self, data: bytes) -> None:
        for message, read in (
            (worker_pb2.Report(), reports.report_from_pb),
            (worker_pb2.JobSpec(), convert.job_spec_from_pb),
            (worker_pb2.RegisterRequest(), registration_from_pb),
            (worker_pb2.SyncRequest(), sync_from_pb),
        ):
            reader: Any = read
            try:
                message.ParseFromString(data)
            except Exception:  # noqa: BLE001 - protobuf refuses it before we see it
                continue
            try:
                reader(message)
            except BadInput:
                continue

    @pytest.mark.parametrize("path", ["", "/etc/passwd", "../up", "a/../../b", "nul\0"])
    def test_a_kernel_path_stays_in_its_folder(self, path: str) -> None:
        spec = JobSpec(
            work=BuildSpec(task=digest_of(b""), source="", kernel_path=path, toolchain="t", target="t:x"),
            limits=Limits(),
        )
        with pytest.raises(BadInput, match="path"):
            convert.job_spec_from_pb(convert.job_spec_to_pb(spec))


def measured(value: float, **changes: Any) -> worker_pb2.FinishedJob:
    """A finished run that claims a speedup, with samples that say the same."""
    theirs = 10**9
    detail = RunResult(
        cases=(CaseResult(case="a", passed=True, relative_l2=0.0, worst=0.1),),
        comparisons=(_comparison("a", "reference", [(max(1, round(theirs / value)), theirs)] * 8),),
        speedups=(_speedup("reference", [value, value, value], 8, "a", value),),
        ran=digest_of(b"a"),
    )
    message = reports.report_to_pb(Report(outcome=Verdict(code=VerdictCode.OK), detail=replace(detail, **changes)))
    return worker_pb2.FinishedJob(lease=common_pb2.LeaseRef(job="c1-1.run", attempt=1), report=message)


class TestPlausibility:
    def test_a_sound_measurement_passes_unchanged(self) -> None:
        report = finished_from_pb(measured(1.4)).report
        assert report.outcome == Verdict(code=VerdictCode.OK)
        assert isinstance(report.detail, RunResult)
        assert report.detail.speedups[0].value == 1.4

    @pytest.mark.parametrize("value", [1e6, 1e-6])
    def test_an_absurd_speedup_is_suspect(self, value: float) -> None:
        report = finished_from_pb(measured(value)).report
        assert isinstance(report.outcome, Verdict)
        assert report.outcome.code is VerdictCode.SUSPECT
        assert isinstance(report.detail, RunResult)
        assert report.detail.speedups == ()

    @pytest.mark.parametrize("number", [math.nan, math.inf, 0.0, -1.0])
    @pytest.mark.parametrize("field", ["value", "low", "high", "worst_value"])
    def test_numbers_that_cannot_be_make_an_incident(self, number: float, field: str) -> None:
        message = measured(1.4)
        setattr(message.report.run.speedups[0], field, number)
        assert isinstance(finished_from_pb(message).report.outcome, Incident)

    def test_a_time_of_zero_makes_an_incident(self) -> None:
        message = measured(1.4)
        message.report.run.comparisons[0].candidate_ns[3] = 0
        assert isinstance(finished_from_pb(message).report.outcome, Incident)

    def test_times_without_a_partner_make_an_incident(self) -> None:
        message = measured(1.4)
        message.report.run.comparisons[0].candidate_ns.append(5)
        assert isinstance(finished_from_pb(message).report.outcome, Incident)

    def test_a_claim_that_its_own_samples_deny_makes_an_incident(self) -> None:
        message = measured(1.4)
        speedup = message.report.run.speedups[0]
        speedup.value, speedup.high = 9.0, 9.5
        outcome = finished_from_pb(message).report.outcome
        assert isinstance(outcome, Incident)
        assert "samples" in outcome.text

    def test_ok_with_a_failed_case_makes_an_incident(self) -> None:
        message = measured(1.4)
        message.report.run.cases[0].passed = False
        assert isinstance(finished_from_pb(message).report.outcome, Incident)

    def test_a_passed_case_with_an_error_of_nan_makes_an_incident(self) -> None:
        message = measured(1.4)
        message.report.run.cases[0].relative_l2 = math.nan
        assert isinstance(finished_from_pb(message).report.outcome, Incident)

    def test_a_wrong_kernel_may_have_infinite_errors(self) -> None:
        message = measured(1.4, comparisons=(), speedups=())
        message.report.verdict.code = common_pb2.VERDICT_CODE_INCORRECT
        message.report.run.cases[0].passed = False
        message.report.run.cases[0].worst = math.inf
        assert finished_from_pb(message).report.outcome == Verdict(code=VerdictCode.INCORRECT)


def asked(**changes: Any) -> worker_pb2.RegisterRequest:
    request = worker_pb2.RegisterRequest(
        worker="w1",
        boot_nonce=b"12345678",
        machine_id="m",
        protocol=worker_pb2.ProtocolRange(min=1, max=2),
        slots=[
            worker_pb2.SlotOffer(
                slot="r0",
                kind=common_pb2.SLOT_KIND_RUN,
                device=worker_pb2.DeviceFacts(id="d0", name="model"),
                cores=3,
            )
        ],
        toolchains=[
            worker_pb2.Toolchain(
                name="cpp", version="12", fingerprint=convert.digest_to_pb(digest_of(b"")), targets=["cpp:native"]
            )
        ],
    )
    for key, value in changes.items():
        setattr(request, key, value)
    return request


class TestCalls:
    def test_a_registration_is_read(self) -> None:
        registration = registration_from_pb(asked())
        (slot,) = registration.slots
        assert (slot.slot, slot.kind, slot.device, slot.device_name, slot.cores) == (
            "r0",
            SlotKind.RUN,
            "d0",
            "model",
            3,
        )
        assert registration.toolchains[0].targets == ("cpp:native",)
        assert (registration.protocol_min, registration.protocol_max) == (1, 2)

    @pytest.mark.parametrize(
        "changes",
        [
            {"worker": ""},
            {"worker": "a b"},
            {"worker": "x" * 200},
            {"worker": "../x"},
            {"boot_nonce": b""},
            {"boot_nonce": b"x" * 65},
            {"machine_id": "x" * 500},
        ],
    )
    def test_a_malformed_registration_is_refused(self, changes: dict[str, Any]) -> None:
        with pytest.raises(BadInput):
            registration_from_pb(asked(**changes))

    @pytest.mark.parametrize("fault", ["slots", "names", "devices", "kind", "outbox"])
    def test_a_registration_with_impossible_lists_is_refused(self, fault: str) -> None:
        request = asked()
        slot = request.slots[0]
        if fault == "slots":
            request.slots.extend([slot] * 300)
        elif fault == "names":
            request.slots.append(slot)
        elif fault == "devices":
            request.slots.add(slot="r1", kind=slot.kind, device=slot.device)
        elif fault == "kind":
            slot.kind = 9  # type: ignore[assignment]
        else:
            request.outbox.extend([worker_pb2.FinishedJob()])
        with pytest.raises(BadInput):
            registration_from_pb(request)

    def test_states_of_a_slot_are_read(self) -> None:
        lease = common_pb2.LeaseRef(job="c1-1.run", attempt=2)
        base: dict[str, Any] = {"session": "s", "daemon_boot": b"b", "slot": "r0", "seq": 4, "accepting": True}
        idle = sync_from_pb(worker_pb2.SyncRequest(**base, idle=worker_pb2.Idle(not_ready_reason="quiet")))
        assert idle.state == IdleState(not_ready="quiet")
        running = sync_from_pb(
            worker_pb2.SyncRequest(**base, running=worker_pb2.Running(lease=lease, stage="check", in_stage_ns=5))
        )
        assert running.state == RunningState(
            lease=LeaseRef(job=JobId("c1-1.run"), attempt=2), stage="check", in_stage=5
        )

    @pytest.mark.parametrize(
        "request_",
        [
            worker_pb2.SyncRequest(session="s", slot="r0", seq=1),
            worker_pb2.SyncRequest(session="s", slot="r0", seq=0, idle=worker_pb2.Idle()),
            worker_pb2.SyncRequest(session="s" * 500, slot="r0", seq=1, idle=worker_pb2.Idle()),
            worker_pb2.SyncRequest(session="s", slot="r0", seq=1, running=worker_pb2.Running()),
            worker_pb2.SyncRequest(session="s", slot="r0", seq=1, finished=worker_pb2.FinishedJob()),
        ],
    )
    def test_a_malformed_sync_is_refused(self, request_: worker_pb2.SyncRequest) -> None:
        with pytest.raises(BadInput):
            sync_from_pb(request_)

    @pytest.mark.parametrize("status", list(SyncStatus))
    def test_every_status_of_a_sync_has_a_number(self, status: SyncStatus) -> None:
        message = sync_answer_to_pb(SyncAnswer(status=status, boot=b"b"))
        assert worker_pb2.SyncStatus.Name(message.status) == f"SYNC_STATUS_{status.name}"

    @pytest.mark.parametrize("status", list(RegisterStatus))
    def test_every_status_of_a_registration_has_a_number(self, status: RegisterStatus) -> None:
        message = register_answer_to_pb(RegisterAnswer(status=status), FleetPolicy())
        assert worker_pb2.RegisterStatus.Name(message.status) == f"REGISTER_STATUS_{status.name}"
        assert message.policy.daemon_down_ns == FleetPolicy().adoption

    @wire
    @given(specs, st.integers(0, convert.INT_MAX))
    def test_a_start_carries_its_job_and_how_long_the_call_was_held(self, spec: JobSpec, held: int) -> None:
        lease = LeaseRef(job=JobId("c1-1.run"), attempt=2)
        directive = StartDirective(lease=lease, held=held, spec=spec)
        message = sync_answer_to_pb(SyncAnswer(status=SyncStatus.OK, boot=b"b", directive=directive))
        assert message.start.held_ns == held
        assert convert.job_spec_from_pb(message.start.job) == spec

    def test_stops_acknowledgements_and_notices_are_written(self) -> None:
        lease = LeaseRef(job=JobId("c1-1.run"), attempt=2)
        answer = SyncAnswer(
            status=SyncStatus.OK,
            boot=b"b",
            acknowledged=lease,
            directive=StopDirective(lease=lease, reason="over"),
            notices=(("drain", "upgrade"),),
        )
        message = sync_answer_to_pb(answer)
        assert convert.lease_from_pb(message.acknowledged) == lease
        assert (message.stop.reason, message.notices[0].text) == ("over", "upgrade")
