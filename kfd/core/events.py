"""Everything that can happen to the engine. Past tense; each is a fact that the outside world reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kfd.base.ids import SessionId, WorkerName
from kfd.core.fleet.model import CallId, Registration, SyncReport

__all__ = ["AgentLeft", "AgentRegistered", "CallDropped", "Event", "SlotSynced", "Ticked", "WorkerDrained"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRegistered:
    """An agent asks for a session."""

    call: CallId
    registration: Registration


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSynced:
    """A slot says what it is doing and waits for what it should do."""

    call: CallId
    report: SyncReport


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLeft:
    """An agent ends its session in good order."""

    call: CallId
    session: SessionId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDropped:
    """The peer of a waiting call went away; nobody reads its answer."""

    call: CallId


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDrained:
    """An operator takes a worker out of service (or, with ``drain`` false, puts it back)."""

    call: CallId
    worker: WorkerName
    drain: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """Time has passed; something may be due."""


Event: TypeAlias = AgentRegistered | SlotSynced | AgentLeft | CallDropped | WorkerDrained | Ticked
