"""What goes into the agent's machines and what comes out of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from kfd.base.instant import SECOND, Instant, Span
from kfd.base.work import JobSpec, LeaseRef, Report

__all__ = [
    "Answer",
    "DropReport",
    "Finished",
    "Idle",
    "NeedSession",
    "Output",
    "Policy",
    "Running",
    "SaveReport",
    "SendSync",
    "Start",
    "StartJob",
    "Status",
    "Stop",
    "StopJob",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Times that the daemon sends with the session."""

    lease_ttl: Span = 20 * SECOND
    guard: Span = 5 * SECOND
    busy_hold: Span = 5 * SECOND
    idle_hold: Span = 20 * SECOND
    daemon_down: Span = 120 * SECOND
    """How long a job is worked on while the daemon's process is known to be down."""


class Status(StrEnum):
    """How the daemon took a Sync."""

    OK = "ok"
    SUPERSEDED = "superseded"
    REREGISTER = "reregister"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Begin this job; ``held`` is how long the daemon kept the call before the grant."""

    lease: LeaseRef
    held: Span
    spec: JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Stop this job and report."""

    lease: LeaseRef
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer to a Sync. An unknown directive is none: carry on."""

    status: Status
    restarted: bool = False
    """Whether another daemon process answers than the one that the session was opened with."""
    acknowledged: LeaseRef | None = None
    directive: Start | Stop | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """The slot has nothing to do."""

    not_ready: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The slot works on a lease."""

    lease: LeaseRef
    stage: str
    in_stage: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The slot has a report that is not acknowledged yet."""

    lease: LeaseRef
    report: Report


# ---- outputs ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSync:
    """Send this; the answer comes back with ``seq``. ``deadline`` is how long to wait for it."""

    seq: int
    accepting: bool
    state: Idle | Running | Finished
    deadline: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class StartJob:
    """Begin a job."""

    lease: LeaseRef
    spec: JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class StopJob:
    """End a job within the guard time; it still ends with a report."""

    lease: LeaseRef
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveReport:
    """Put a report into the outbox, durably, then say ``saved``."""

    lease: LeaseRef
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class DropReport:
    """The daemon has it: take it out of the outbox."""

    lease: LeaseRef


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedSession:
    """The daemon does not know our session: register."""


Output: TypeAlias = SendSync | StartJob | StopJob | SaveReport | DropReport | NeedSession

NEVER: Instant = 1 << 62
