"""Everything that can happen to the engine. Past tense; each is a fact that the outside world reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kfd.base.ids import CampaignId, CandidateId, SessionId, WorkerName
from kfd.base.instant import Span
from kfd.core.campaign.mutation import MutationId, Regions
from kfd.core.campaign.state import CampaignSpec
from kfd.core.commands import Packed
from kfd.core.fleet.model import CallId, Registration, SyncReport
from kfd.core.search.archive import Cell
from kfd.core.search.tuning import Declared

__all__ = [
    "INTERNAL",
    "AgentLeft",
    "AgentRegistered",
    "CallDropped",
    "CampaignCancelled",
    "CampaignPaused",
    "CampaignResumed",
    "CampaignSubmitted",
    "DaemonStopping",
    "DraftArrived",
    "DraftEvent",
    "DraftFaulted",
    "DraftMissed",
    "DraftRejected",
    "Drafted",
    "Event",
    "MutationArrived",
    "MutationEvent",
    "MutationFaulted",
    "MutationMissed",
    "MutationRejected",
    "SlotSynced",
    "SpaceChanged",
    "Ticked",
    "WorkerDrained",
]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStopping:
    """The daemon ends in good order: every parked call is to be answered."""

    call: CallId


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceChanged:
    """The disk under the state folder became too full for new work, or has room again."""

    low: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A kernel taken from an answer, with what was read from its source."""

    source: str
    """Hex SHA-256 of the whole kernel text."""
    kernel_text: str
    normal: str
    shape: str
    """Hex SHA-256 of the source without its own names: equal ones are near-duplicates."""
    cell: Cell
    space: Declared | None = None
    """What a template declares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSubmitted:
    """A person starts a campaign. Idempotent by the spec's key."""

    call: CallId
    spec: CampaignSpec
    initial: Drafted | None
    """The task's own kernel; None when the campaign generates from nothing."""
    initial_text: Packed | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPaused:
    """A person (or a fault that only a person can mend) stops a campaign from asking."""

    call: CallId
    campaign: CampaignId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignResumed:
    """A person lets a paused campaign go on."""

    call: CallId
    campaign: CampaignId


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignCancelled:
    """A person ends a campaign."""

    call: CallId
    campaign: CampaignId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftArrived:
    """An answer came and holds a kernel."""

    candidate: CandidateId
    drafted: Drafted
    model: str
    input_tokens: int
    output_tokens: int
    texts: tuple[Packed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRejected:
    """An answer came and holds no usable kernel."""

    candidate: CandidateId
    reason: str
    detail: str
    model: str
    input_tokens: int
    output_tokens: int
    texts: tuple[Packed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftMissed:
    """There is no answer to this question and there will be none."""

    candidate: CandidateId
    text: str


INTERNAL = "internal"
"""Kind of a fault that is ours and not the provider's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftFaulted:
    """The provider failed. None for ``retry_after`` means that only a person can mend it."""

    candidate: CandidateId
    kind: str
    text: str
    retry_after: Span | None
    model: str = ""
    """Who failed, where anybody was asked."""
    input_tokens: int = 0
    """Tokens of what was asked and answered before it failed; they are spent."""
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationArrived:
    """The meta-prompter's answer makes a new text of the variant that it was asked about."""

    mutation: MutationId
    regions: Regions
    model: str
    input_tokens: int
    output_tokens: int
    texts: tuple[Packed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationRejected:
    """The meta-prompter answered, and the answer cannot be applied."""

    mutation: MutationId
    reason: str
    model: str
    input_tokens: int
    output_tokens: int
    texts: tuple[Packed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationMissed:
    """There is nobody who could answer, and there will be none."""

    mutation: MutationId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationFaulted:
    """The provider failed. None for ``retry_after`` means that only a person can mend it."""

    mutation: MutationId
    kind: str
    text: str
    retry_after: Span | None
    input_tokens: int
    output_tokens: int


MutationEvent: TypeAlias = MutationArrived | MutationRejected | MutationMissed | MutationFaulted

DraftEvent: TypeAlias = DraftArrived | DraftRejected | DraftMissed | DraftFaulted

Event: TypeAlias = (
    AgentRegistered
    | SlotSynced
    | AgentLeft
    | CallDropped
    | WorkerDrained
    | Ticked
    | SpaceChanged
    | DaemonStopping
    | CampaignSubmitted
    | CampaignPaused
    | CampaignResumed
    | CampaignCancelled
    | DraftEvent
    | MutationEvent
)
