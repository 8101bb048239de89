"""What goes in and out of the campaign machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from kfd.base.ids import JobId
from kfd.core.campaign.mutation import Mutation
from kfd.core.campaign.state import CampaignRecord, CampaignSpec, Candidate
from kfd.core.commands import Command
from kfd.core.fleet.model import Job
from kfd.core.search.archive import Elite
from kfd.core.search.budgets import ZERO, Amount
from kfd.core.search.operators import Operator
from kfd.core.search.proposals import Broken, Outcome

__all__ = ["CancelJob", "Enqueue", "Loaded", "Output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueue:
    """Give the fleet a job."""

    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob:
    """Take a job back from the fleet."""

    job: JobId
    reason: str


Output: TypeAlias = Command | Enqueue | CancelJob


@dataclass(kw_only=True)
class Loaded:
    """What the store knows of a campaign that has not ended."""

    spec: CampaignSpec
    record: CampaignRecord
    open_candidates: list[Candidate] = field(default_factory=list)
    initial: Candidate | None = None
    elites: list[Elite] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    normals: set[str] = field(default_factory=set)
    shapes: set[str] = field(default_factory=set)
    answered: dict[tuple[str, str], int] = field(default_factory=dict)
    closed: set[tuple[str, str]] = field(default_factory=set)
    """(parent digest, operator) of questions that had no answer."""
    outcomes: list[Outcome] = field(default_factory=list)
    """What the search was told, in the order of telling."""
    mutations: list[Mutation] = field(default_factory=list)
    """Mutations of prompt variants, ended or not, in the order of asking."""
    migrants: list[Candidate] = field(default_factory=list)
    """Candidates that were taken from other campaigns of the group."""
    tuning: list[Candidate] = field(default_factory=list)
    """Templates with a space, and the points that were asked for."""
    last_asked: dict[Operator, int] = field(default_factory=dict)
    """``told`` when template and simplify were asked for last."""
    told: int = 0
    """Place of the last candidate that the search was told of; questions without an answer count too."""
    next_ordinal: int = 0
    spent: Amount = ZERO
    """Sum of all costs that were saved."""
