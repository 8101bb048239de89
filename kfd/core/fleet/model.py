"""Values of the fleet machine: what goes in, what it keeps, what comes out (worker-protocol 3 to 6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from kfd.base.digest import Digest
from kfd.base.ids import CampaignId, JobId, SessionId, SlotName, WorkerName
from kfd.base.instant import SECOND, Instant, Span
from kfd.base.work import JobSpec, LeaseRef, Report, SlotKind

__all__ = [
    "NEVER",
    "CallId",
    "Fact",
    "FinishedJob",
    "FleetOutput",
    "FleetPolicy",
    "IdleState",
    "Job",
    "JobSettled",
    "JobState",
    "QueueClass",
    "QueueView",
    "RegisterAnswer",
    "RegisterStatus",
    "Registration",
    "Reply",
    "RunningState",
    "SaveJob",
    "SlotOffer",
    "SlotState",
    "StartDirective",
    "StopDirective",
    "SyncAnswer",
    "SyncReport",
    "SyncStatus",
    "ToolchainOffer",
    "WorkerSeen",
]

CallId: TypeAlias = int
"""Handle of a call that waits for its answer; drawn by the reactor, never reused within a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPolicy:
    """Times and limits of the protocol (worker-protocol 4.2 and 5, DESIGN section 10)."""

    lease_ttl: Span = 20 * SECOND
    guard: Span = 5 * SECOND
    busy_hold: Span = 5 * SECOND
    idle_hold: Span = 20 * SECOND
    adoption: Span = 120 * SECOND
    """After a restart of the daemon a loaded lease's agent has this long to come back before the job is
    granted again; agents work on as long while the daemon's process is down."""
    incident_limit: int = 3
    """Attempts that may end with an incident before the job settles as one."""
    poison_limit: int = 2
    """Attempts that may end with the loss of the agent before the candidate is blamed."""
    attempt_limit: int = 12
    """Attempts of any kind after which a job settles as an incident, also when nobody is to blame for their ends."""
    offer_limit: int = 3
    """Times a start may be offered to a slot that keeps saying idle."""
    slot_incident_limit: int = 3
    """Incidents in a row, by different candidates, after which a slot is set aside."""


class JobState(StrEnum):
    """``queued -> leased -> settled``; leased goes back to queued when an attempt is lost."""

    QUEUED = "queued"
    LEASED = "leased"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One unit of work. The lease is (id, attempt) together with the worker and slot that hold it."""

    id: JobId
    campaign: CampaignId
    spec: JobSpec
    state: JobState = JobState.QUEUED
    attempt: int = 0
    incidents: int = 0
    agent_losses: int = 0
    cancelled: bool = False
    worker: WorkerName | None = None
    """Holder of the lease while leased; the last holder while queued (to be avoided next time)."""
    slot: SlotName | None = None
    session: SessionId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOffer:
    """One slot that an agent offers."""

    slot: SlotName
    kind: SlotKind
    device: str
    device_name: str = ""
    cores: int = 1
    memory_bytes: int = 0
    targets: tuple[str, ...] = ()
    """What a run slot's device runs, whoever built it. Empty: what the agent's toolchains build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolchainOffer:
    """One toolchain that passed its self-test on the agent."""

    name: str
    version: str
    fingerprint: Digest
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJob:
    """A finished report, as sent in a Sync or found in an agent's outbox."""

    lease: LeaseRef
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """An agent opens a session. Idempotent by boot nonce."""

    worker: WorkerName
    boot_nonce: bytes
    machine_id: str
    protocol_min: int
    protocol_max: int
    agent_version: str
    slots: tuple[SlotOffer, ...]
    toolchains: tuple[ToolchainOffer, ...]
    outbox: tuple[FinishedJob, ...] = ()
    host: tuple[tuple[str, str], ...] = ()


class RegisterStatus(StrEnum):
    """What became of a registration."""

    OK = "ok"
    NAME_IN_USE = "name_in_use"
    WRONG_PROTOCOL = "wrong_protocol"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterAnswer:
    """Answer to a registration."""

    status: RegisterStatus
    text: str = ""
    session: SessionId | None = None
    protocol: int = 0
    boot: bytes = b""
    acknowledged: tuple[LeaseRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleState:
    """The slot has nothing to do; ``not_ready`` says why it would take nothing."""

    not_ready: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningState:
    """The slot works on a lease."""

    lease: LeaseRef
    stage: str = ""
    in_stage: Span = 0


SlotState: TypeAlias = IdleState | RunningState | FinishedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What one slot says of itself."""

    session: SessionId
    boot: bytes
    slot: SlotName
    seq: int
    accepting: bool
    state: SlotState


class SyncStatus(StrEnum):
    """How the daemon took a Sync."""

    OK = "ok"
    SUPERSEDED = "superseded"
    REREGISTER = "reregister"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDirective:
    """Begin this job. ``held`` is how long the daemon kept the call before the grant."""

    lease: LeaseRef
    held: Span
    spec: JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDirective:
    """Stop this job and report."""

    lease: LeaseRef
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncAnswer:
    """What the slot should do. No directive means: go on as you are."""

    status: SyncStatus
    boot: bytes
    acknowledged: LeaseRef | None = None
    directive: StartDirective | StopDirective | None = None
    notices: tuple[tuple[str, str], ...] = ()


# ---- outputs ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer a waiting call, once the batch is durable."""

    call: CallId
    answer: SyncAnswer | RegisterAnswer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveJob:
    """Write a job's row."""

    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettled:
    """A job has reached its end: tell its campaign. ``job.state`` is ``settled``."""

    job: Job
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that happened, for the event log. ``kind`` is ``noun.verb_past``."""

    kind: str
    campaign: CampaignId | None = None
    body: tuple[tuple[str, str | int | float | bool | None], ...] = ()


FleetOutput: TypeAlias = Reply | SaveJob | JobSettled | Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSeen:
    """Read model of a worker, for people."""

    worker: WorkerName
    state: str
    reason: str
    agent_version: str
    last_seen: Span
    slots: tuple[tuple[SlotOffer, str, JobId | None, Span, str, str], ...]
    """(offer, state, job, age of the state, why, stage)"""
    toolchains: tuple[ToolchainOffer, ...]
    settled: int


# Used by timers: a value that no instant reaches.
NEVER: Instant = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueClass:
    """Waiting jobs of one requirement."""

    kind: SlotKind
    toolchain: str
    target: str
    queued: int
    device_name: str = ""
    """Device model that the campaigns behind them are bound to; empty when any will do."""
    served: bool = True
    """Whether a slot that is up could take them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """Read model of the queue, for people."""

    queued_builds: int
    queued_runs: int
    leased: int
    oldest_queued: Span
    """Age of the job that waits longest; 0 when none waits."""
    classes: tuple[QueueClass, ...]
    halted: str
    """Why nothing is granted; empty when jobs are granted."""
