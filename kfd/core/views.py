"""Read models: what people see of campaigns, candidates and events. Made by the store, shown by rpc and web."""

from __future__ import annotations

from dataclasses import dataclass

from kfd.base.ids import CampaignId
from kfd.base.work import AdmitResult, Report
from kfd.core.campaign.state import CampaignRecord, CampaignSpec, Candidate
from kfd.core.search.budgets import Amount

__all__ = ["CampaignView", "CandidateView", "EventRow"]


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
class CandidateView:
    """A candidate with the evidence of its last settled job."""

    candidate: Candidate
    campaign: CampaignId
    elite: bool
    report: Report | None
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event."""

    seq: int
    at: str
    campaign: str
    kind: str
    body: str
