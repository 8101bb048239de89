"""Everything that the engine can ask for. Imperatives; nothing is visible before its batch is durable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kfd.base.failure import CallerError
from kfd.base.ids import CampaignId, CandidateId
from kfd.base.work import Report
from kfd.core.campaign.mutation import Mutation, MutationId, MutationRequest, Regions
from kfd.core.campaign.state import CampaignRecord, CampaignSpec, Candidate
from kfd.core.fleet.model import CallId, Fact, Reply, SaveJob
from kfd.core.search.archive import Niche
from kfd.core.search.budgets import Amount
from kfd.core.search.operators import Operator
from kfd.core.search.tuning import Values

__all__ = [
    "Command",
    "CreateCampaign",
    "DemoteCandidate",
    "DraftRequest",
    "Packed",
    "Refuse",
    "ReplyTo",
    "SaveCampaign",
    "SaveCandidate",
    "SaveElite",
    "SaveMutation",
    "SaveMutationText",
    "SaveReport",
    "SaveSpending",
    "SaveText",
    "StartDraft",
    "StartMutation",
    "StopDraft",
    "StopMutation",
    "TextKind",
]

TextKind: TypeAlias = str
"""``source``, ``prompt`` or ``answer``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A text, compressed by whoever had it; the core only passes it on."""

    kind: TextKind
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCampaign:
    """Write a new campaign's row."""

    spec: CampaignSpec
    record: CampaignRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveCampaign:
    """Write what changed about a campaign."""

    record: CampaignRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveCandidate:
    """Write a candidate's row."""

    campaign: CampaignId
    candidate: Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveElite:
    """Write who owns a cell."""

    campaign: CampaignId
    cell: Niche
    candidate: CandidateId


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoteCandidate:
    """A winner did not stand up to a fresh measurement: its verdict becomes ``suspect``, its cell is free."""

    campaign: CampaignId
    candidate: CandidateId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveText:
    """Keep a text of a candidate."""

    candidate: CandidateId
    text: Packed


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveReport:
    """Keep the evidence of a settled job."""

    job: str
    candidate: CandidateId
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveSpending:
    """Add a cost to what the campaign has spent under a key: a candidate's or another asker's id, or a job's."""

    campaign: CampaignId
    key: str
    cost: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRequest:
    """What a drafter needs to ask a generator; texts are read from the store."""

    campaign: CampaignSpec
    candidate: CandidateId
    ordinal: int
    operator: Operator
    parent: CandidateId | None
    parent_source: str
    nth: int
    inspirations: tuple[CandidateId, ...]
    best: CandidateId | None
    hints: tuple[str, ...]
    """Directions of the search in words."""
    algorithm: int
    """Level of the algorithm of whom a point or migrant is made from: what its author claimed holds there."""
    values: Values
    """Point of a sweep: the parent's source with these values, and nobody is asked."""
    model: str
    """Configured name of the model; empty lets the generator choose."""
    model_choice: float
    regions: Regions = ()
    """What the candidate's prompt variant says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDraft:
    """Ask the generator. Ends as DraftArrived, DraftRejected, DraftMissed or DraftFaulted."""

    request: DraftRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDraft:
    """Stop asking; the answer is no longer wanted."""

    candidate: CandidateId


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveMutation:
    """Write the row of a mutation of a prompt variant."""

    campaign: CampaignId
    mutation: Mutation


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveMutationText:
    """Keep the question (``prompt``) or the ``answer`` of a mutation; a later one takes its place."""

    campaign: CampaignId
    nth: int
    text: Packed


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMutation:
    """Ask the meta-prompter. Ends as MutationArrived, MutationRejected, MutationMissed or MutationFaulted."""

    request: MutationRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class StopMutation:
    """Stop asking the meta-prompter; the answer is no longer wanted."""

    mutation: MutationId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTo:
    """Answer a waiting caller with plain data."""

    call: CallId
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Refuse a waiting caller."""

    call: CallId
    error: CallerError


Command: TypeAlias = (
    CreateCampaign
    | SaveCampaign
    | SaveCandidate
    | SaveElite
    | DemoteCandidate
    | SaveText
    | SaveReport
    | SaveSpending
    | SaveJob
    | Fact
    | StartDraft
    | StopDraft
    | SaveMutation
    | SaveMutationText
    | StartMutation
    | StopMutation
    | Reply
    | ReplyTo
    | Refuse
)
