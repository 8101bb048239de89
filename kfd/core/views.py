"""Read models: what people see of campaigns, candidates and events. Made by the store, shown by rpc and web."""

from __future__ import annotations

from dataclasses import dataclass

from kfd.base.ids import CampaignId, CandidateId
from kfd.base.work import AdmitResult, Report
from kfd.core.campaign.mutation import Mutation, Regions
from kfd.core.campaign.state import CampaignRecord, CampaignSpec, Candidate
from kfd.core.search.budgets import Amount

__all__ = ["CampaignView", "CandidateView", "ChildView", "EventRow", "PromptView", "SearchView", "Share"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignView:
    """A campaign with what is derived from its candidates' rows."""

    spec: CampaignSpec
    record: CampaignRecord
    outcomes: tuple[tuple[str, int], ...]
    """Verdict code, ``discarded:REASON``, or the state of those in flight; with their number.
    Questions that had no recording are events, not candidates, and are not among them."""
    cells: int
    best: Candidate | None
    has_initial: bool
    admission: AdmitResult | None
    """What was tried on the task before the campaign began; None while that is not done."""
    input_tokens: int
    output_tokens: int
    spent: Amount
    last_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How often one choice of the search was made."""

    kind: str
    """operator, model or prompt."""
    name: str
    asked: int
    recent: int
    """Among the newest questions."""
    elites: int
    """Children that became elites when they were judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView:
    """What a campaign's search has asked for and what it reacts to, from its candidates' rows."""

    shares: tuple[Share, ...]
    recent: int
    """How many of the newest questions ``Share.recent`` counts."""
    hinted: int
    hints: tuple[str, ...]
    """Those of the newest question that had any, in words."""
    reaction: str
    """The plateau reaction in force at the newest question."""
    reacting: int
    """Questions that were asked during a plateau."""
    templates: int
    points: int
    swept: CandidateId | None
    """The template of the newest point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateView:
    """A candidate with the evidence of its last settled job."""

    candidate: Candidate
    campaign: CampaignId
    elite: bool
    report: Report | None
    attempts: int
    build: Report | None = None
    """The evidence of its build, whatever came after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildView:
    """A child of a prompt variant with what became of it and what it changed."""

    candidate: Candidate
    build: Report | None
    run: Report | None
    """Its last measurement."""
    source: str | None
    """None when its answer held no kernel."""
    parent_source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptView:
    """A mutation of a prompt variant, or the first variant, with what the search credits it with."""

    mutation: Mutation | None
    """None for the first variant."""
    variant: str
    """Its id; empty when the mutation made none."""
    regions: Regions
    children: int = 0
    """Children that the credit rests on."""
    gain: float = 0.0
    """Sum of their gains in fitness over their parents."""
    credit: float = 0.0
    held: bool = False
    """Whether the archive holds it, so that candidates are asked for with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event."""

    seq: int
    at: str
    campaign: str
    kind: str
    body: str
