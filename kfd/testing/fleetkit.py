"""Small builders for tests of the fleet: jobs, registrations, reports with sensible defaults."""

from __future__ import annotations

from collections.abc import Iterable

from kfd.base.digest import digest_of
from kfd.base.ids import CampaignId, JobId, SessionId, SlotName, WorkerName
from kfd.base.work import (
    BuildResult,
    BuildSpec,
    CaseResult,
    Incident,
    IncidentCode,
    JobSpec,
    LeaseRef,
    Limits,
    Report,
    RunResult,
    RunSpec,
    SlotKind,
    Speedup,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd.core.fleet.machine import Fleet
from kfd.core.fleet.model import (
    FinishedJob,
    FleetOutput,
    IdleState,
    Job,
    RegisterAnswer,
    RegisterStatus,
    Registration,
    Reply,
    RunningState,
    SlotOffer,
    StartDirective,
    SyncAnswer,
    SyncReport,
    ToolchainOffer,
)

__all__ = [
    "OK",
    "RUN_DETAIL",
    "RUN_OK",
    "Peer",
    "build_job",
    "incident",
    "registration",
    "run_job",
    "stopped",
    "verdict",
]

_TASK = digest_of(b"task")
_ARTIFACT = digest_of(b"artifact")


def verdict(code: VerdictCode = VerdictCode.OK, text: str = "") -> Report:
    """A report with a verdict."""
    return Report(outcome=Verdict(code=code, text=text), detail=BuildResult(artifact=_ARTIFACT))


def incident(code: IncidentCode = IncidentCode.DEVICE, text: str = "sick") -> Report:
    """A report with an incident."""
    return Report(outcome=Incident(code=code, text=text))


def stopped(reason: str = "asked") -> Report:
    """A report of a job that was stopped."""
    return Report(outcome=Stopped(reason=reason))


OK = verdict()
"""An accepted build."""

RUN_DETAIL = RunResult(
    cases=(CaseResult(case="a", passed=True, relative_l2=0.0, worst=0.1),),
    speedups=(Speedup(baseline="reference", value=1.5, low=1.4, high=1.6, rounds=8, worst_case="a", worst_value=1.5),),
    ran=_ARTIFACT,
)

RUN_OK = Report(outcome=Verdict(code=VerdictCode.OK), detail=RUN_DETAIL)
"""An accepted run."""


def build_job(
    name: str = "c1-1.build", *, campaign: str = "", toolchain: str = "sim", target: str = "sim:device"
) -> Job:
    """A queued build job."""
    work = BuildSpec(task=_TASK, source=f"// {name}", kernel_path="k.cpp", toolchain=toolchain, target=target)
    return Job(
        id=JobId(name),
        campaign=CampaignId(campaign or name.partition("-")[0]),
        spec=JobSpec(work=work, limits=Limits()),
    )


def run_job(name: str = "c1-1.run", *, campaign: str = "", toolchain: str = "sim", target: str = "sim:device") -> Job:
    """A queued run job."""
    work = RunSpec(
        task=_TASK,
        artifact=_ARTIFACT,
        initial_artifact=None,
        toolchain=toolchain,
        target=target,
        seed=bytes(32),
    )
    return Job(
        id=JobId(name),
        campaign=CampaignId(campaign or name.partition("-")[0]),
        spec=JobSpec(work=work, limits=Limits()),
    )


def registration(
    worker: str = "w1",
    *,
    nonce: bytes = b"nonce-01",
    machine: str = "m1",
    build: int = 1,
    run: int = 0,
    device_name: str = "H200",
    targets: tuple[str, ...] = ("sim:device",),
    toolchain: str = "sim",
    outbox: Iterable[FinishedJob] = (),
    protocol: tuple[int, int] = (1, 1),
) -> Registration:
    """A registration with build slots ``b0..`` and run slots ``r0..``."""
    slots = [SlotOffer(slot=SlotName(f"b{i}"), kind=SlotKind.BUILD, device="") for i in range(build)]
    slots += [
        SlotOffer(slot=SlotName(f"r{i}"), kind=SlotKind.RUN, device=f"{worker}-{i}", device_name=device_name)
        for i in range(run)
    ]
    return Registration(
        worker=WorkerName(worker),
        boot_nonce=nonce,
        machine_id=machine,
        protocol_min=protocol[0],
        protocol_max=protocol[1],
        agent_version="0.1.0",
        slots=tuple(slots),
        toolchains=(ToolchainOffer(name=toolchain, version="1", fingerprint=digest_of(b"tc"), targets=targets),),
        outbox=tuple(outbox),
    )


class Peer:
    """An agent played by hand against a Fleet: each method is one message; answers are collected by call."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.calls = 0
        self.answers: dict[int, SyncAnswer | RegisterAnswer | None] = {}
        self.outputs: list[FleetOutput] = []
        self.sessions: dict[str, SessionId] = {}
        self.seqs: dict[tuple[str, str], int] = {}

    def take(self, outputs: list[FleetOutput]) -> list[FleetOutput]:
        """Note outputs, check the invariants, and give the outputs back."""
        for output in outputs:
            if isinstance(output, Reply):
                assert output.call not in self.answers, "a call is answered twice"
                self.answers[output.call] = output.answer
        self.outputs += outputs
        self.fleet.check()
        return outputs

    def call(self) -> int:
        """A fresh call id."""
        self.calls += 1
        return self.calls

    def register(self, asked: Registration, now: int) -> RegisterAnswer:
        """Register; the answer."""
        call = self.call()
        self.take(self.fleet.register(call, asked, now))
        answer = self.answers[call]
        assert isinstance(answer, RegisterAnswer)
        if answer.status is RegisterStatus.OK and answer.session is not None:
            self.sessions[asked.worker] = answer.session
        return answer

    def report(
        self,
        worker: str,
        slot: str,
        state: IdleState | RunningState | FinishedJob,
        *,
        accepting: bool = True,
        seq: int | None = None,
        boot: bytes | None = None,
    ) -> SyncReport:
        """A report of a slot with the next sequence number (or a given one)."""
        if seq is None:
            seq = self.seqs[(worker, slot)] = self.seqs.get((worker, slot), 0) + 1
        return SyncReport(
            session=self.sessions[worker],
            boot=self.fleet.boot if boot is None else boot,
            slot=SlotName(slot),
            seq=seq,
            accepting=accepting,
            state=state,
        )

    def send(self, report: SyncReport, now: int) -> int:
        """Send a report; its call id."""
        call = self.call()
        self.take(self.fleet.sync(call, report, now))
        return call

    def idle(self, worker: str, slot: str, now: int, *, accepting: bool = True, not_ready: str = "") -> int:
        """Say idle; the call id."""
        return self.send(self.report(worker, slot, IdleState(not_ready=not_ready), accepting=accepting), now)

    def running(self, worker: str, slot: str, lease: LeaseRef, now: int, stage: str = "build") -> int:
        """Say running; the call id."""
        return self.send(self.report(worker, slot, RunningState(lease=lease, stage=stage)), now)

    def finished(
        self, worker: str, slot: str, lease: LeaseRef, report: Report, now: int, *, accepting: bool = True
    ) -> int:
        """Say finished; the call id."""
        state = FinishedJob(lease=lease, report=report)
        return self.send(self.report(worker, slot, state, accepting=accepting), now)

    def tick(self, now: int) -> list[FleetOutput]:
        """Let time pass."""
        return self.take(self.fleet.tick(now))

    def answer(self, call: int) -> SyncAnswer:
        """Answer of a Sync that must have been answered."""
        answer = self.answers[call]
        assert isinstance(answer, SyncAnswer)
        return answer

    def started(self, call: int) -> LeaseRef:
        """The lease that a call was answered with."""
        directive = self.answer(call).directive
        assert isinstance(directive, StartDirective), directive
        return directive.lease
