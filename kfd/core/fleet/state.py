"""What the fleet machine keeps: open jobs, agents, slots. Mutable, and private to this package."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from kfd.base.digest import digest_of
from kfd.base.ids import CampaignId, JobId, SessionId, SlotName, WorkerName
from kfd.base.instant import Instant
from kfd.base.work import LeaseRef, SlotKind
from kfd.core.fleet.health import SlotHealth
from kfd.core.fleet.model import CallId, Job, SlotOffer, ToolchainOffer
from kfd.core.fleet.timers import Timer

__all__ = [
    "Agent",
    "Bond",
    "Entry",
    "Key",
    "Line",
    "Owner",
    "Phase",
    "Slot",
    "incarnation_of",
    "keys_of",
    "session_id",
]

Key: TypeAlias = tuple[SlotKind, str, str, str | None]
"""(kind, toolchain, target, device model): what a queue holds jobs for and a slot can take jobs of. The model
is None for builds and for runs of campaigns that are not bound to a model yet."""


class Phase(StrEnum):
    """How far a lease has come: sent but not yet reported, or reported running."""

    OFFERED = "offered"
    ACTIVE = "active"


@dataclass(slots=True, eq=False)
class Line:
    """One campaign's waiting jobs of one key, first come, first served; ``stamp`` orders a ring's lines."""

    campaign: CampaignId
    key: Key
    stamp: int
    jobs: OrderedDict[JobId, Entry] = field(default_factory=OrderedDict)


@dataclass(slots=True, eq=False)
class Entry:
    """An open job. Exactly one of: queued, held by a slot, or leased without a slot (``orphan``)."""

    job: Job
    reason: str = ""
    """Why the job was cancelled."""
    line: Line | None = None
    """Line that it waits in when it waits for its first attempt."""
    retry: Key | None = None
    """Queue whose retries it waits among after a lost attempt."""
    avoid_until: Instant = 0
    """Until then another worker than ``job.worker`` is preferred."""
    slot: Slot | None = None
    timer: Timer[Owner] | None = None
    """Deadline of an orphan's adoption, or the end of ``avoid_until``."""

    @property
    def queued(self) -> bool:
        """Whether it waits for a slot."""
        return self.line is not None or self.retry is not None

    @property
    def lease(self) -> LeaseRef:
        """Name of the job's current (or last) lease."""
        return LeaseRef(job=self.job.id, attempt=self.job.attempt)


@dataclass(slots=True, eq=False)
class Slot:
    """One slot of one session."""

    agent: Agent
    offer: SlotOffer
    health: SlotHealth
    keys: tuple[Key, ...] = ()
    seq: int = 0
    call: CallId | None = None
    arrived: Instant = 0
    """Arrival of the call that is parked (or was answered last)."""
    accepting: bool = False
    """Whether it said that it would take a start."""
    busy: bool = False
    """Whether its last report was of a job, running or finished."""
    ready: bool = False
    """Whether a call is parked that may be answered with a start."""
    counted: bool = False
    """Whether the slot counts as one that serves its keys."""
    why: str = ""
    stage: str = ""
    since: Instant = 0
    entry: Entry | None = None
    phase: Phase = Phase.OFFERED
    offers: int = 0
    told: tuple[LeaseRef, Instant] | None = None
    """The stop that was sent last, and when."""
    stop: tuple[LeaseRef, str] | None = None
    """The stop that the parked call is to be answered with when its hold ends."""
    hold: Timer[Owner] = field(init=False)
    deadline: Timer[Owner] = field(init=False)

    def __post_init__(self) -> None:
        self.hold = Timer(owner=self, what="hold")
        self.deadline = Timer(owner=self, what="lease")

    @property
    def willing(self) -> bool:
        """Whether it may be given a job: it would take one, and nothing speaks against it."""
        return self.accepting and self.agent.drained is None and not self.health.aside

    @property
    def name(self) -> SlotName:
        """Name of the slot within its worker."""
        return self.offer.slot


@dataclass(slots=True, eq=False)
class Agent:
    """One worker by name, with its current session."""

    worker: WorkerName
    nonce: bytes = b""
    machine_id: str = ""
    session: SessionId | None = None
    version: str = ""
    protocol: int = 0
    toolchains: tuple[ToolchainOffer, ...] = ()
    host: tuple[tuple[str, str], ...] = ()
    """Facts of the host, as it registered."""
    slots: dict[SlotName, Slot] = field(default_factory=dict)
    last_seen: Instant = 0
    parked: int = 0
    """Calls of this agent that wait for an answer."""
    live: bool = False
    """Whether it spoke within the last TTL, or has a call parked."""
    drained: str | None = None
    """Why an operator took it out of service; None while it is in service."""
    reason: str = ""
    """Why it is down."""
    settled: int = 0
    suspects: set[JobId] = field(default_factory=set)
    """Jobs on it that were under way before when an agent was lost: at most one at a time, so that blame is
    not shared."""
    past_nonces: deque[bytes] = field(default_factory=lambda: deque(maxlen=16))
    blamed: deque[Entry] = field(default_factory=lambda: deque(maxlen=4096))
    """Jobs whose lease ran out in silence: if the same session speaks again, it was the network."""
    silence: Timer[Owner] = field(init=False)

    def __post_init__(self) -> None:
        self.silence = Timer(owner=self, what="silence")


@dataclass(slots=True, eq=False)
class Bond:
    """The device model that a campaign's runs for one target are bound to, watched while no slot has it."""

    key: Key
    timer: Timer[Owner] = field(init=False)

    def __post_init__(self) -> None:
        self.timer = Timer(owner=self, what="bond")


Owner: TypeAlias = Slot | Entry | Agent | Bond


def session_id(worker: WorkerName, nonce: bytes, boot: bytes) -> SessionId:
    """Session of one agent process with one daemon process. Its first part names the agent process alone, so
    that a restarted daemon can tell an agent that stayed from one that restarted too."""
    name = worker.encode()
    incarnation = digest_of(len(name).to_bytes(4, "big") + name + nonce).hash[:20]
    return SessionId(f"{incarnation}.{digest_of(incarnation.encode() + boot).hash[:12]}")


def incarnation_of(session: SessionId | None) -> str:
    """The part of a session id that names the agent process; empty for None."""
    return "" if session is None else session.partition(".")[0]


def keys_of(offer: SlotOffer, toolchains: tuple[ToolchainOffer, ...]) -> tuple[Key, ...]:
    """Every queue that a slot can take jobs from."""
    keys: dict[Key, None] = {}
    for toolchain, target in served(offer, toolchains):
        if offer.kind is SlotKind.RUN:
            keys[(offer.kind, toolchain, target, offer.device_name)] = None
        keys[(offer.kind, toolchain, target, None)] = None
    return tuple(keys)


def served(offer: SlotOffer, toolchains: tuple[ToolchainOffer, ...]) -> list[tuple[str, str]]:
    """(toolchain, target) of everything that a slot can do: what its device runs, or what the agent can build."""
    if offer.kind is SlotKind.RUN and offer.targets:
        return [(target.partition(":")[0], target) for target in offer.targets]
    return [(toolchain.name, target) for toolchain in toolchains for target in toolchain.targets]
