"""The rows of a simulated store: what is left of the engine's commands when the daemon is killed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kfd.base.ids import CampaignId, CandidateId, JobId, campaign_of
from kfd.base.work import BuildSpec
from kfd.core.campaign import learning
from kfd.core.campaign.judging import as_broken, as_elite, baseline_speedup
from kfd.core.campaign.mutation import Mutation
from kfd.core.campaign.ports import Loaded
from kfd.core.campaign.state import ENDED, CampaignRecord, CampaignSpec, Candidate, DiscardReason
from kfd.core.commands import (
    Command,
    CreateCampaign,
    DemoteCandidate,
    SaveCampaign,
    SaveCandidate,
    SaveElite,
    SaveMutation,
    SaveSpending,
)
from kfd.core.fleet.model import Job, JobState, SaveJob
from kfd.core.search.archive import Niche
from kfd.core.search.budgets import ZERO, Amount
from kfd.core.search.operators import Operator

__all__ = ["Rows"]


@dataclass
class Rows:
    """What a store would hold, written from the engine's commands."""

    specs: dict[CampaignId, CampaignSpec] = field(default_factory=dict)
    records: dict[CampaignId, CampaignRecord] = field(default_factory=dict)
    candidates: dict[CandidateId, Candidate] = field(default_factory=dict)
    elites: dict[tuple[CampaignId, Niche], CandidateId] = field(default_factory=dict)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    settled: dict[JobId, int] = field(default_factory=dict)
    sources: dict[CandidateId, str] = field(default_factory=dict)
    spent: dict[CampaignId, Amount] = field(default_factory=dict)
    mutations: dict[tuple[CampaignId, int], Mutation] = field(default_factory=dict)

    def apply(self, commands: list[Command]) -> None:
        """Write a batch."""
        for command in commands:
            match command:
                case CreateCampaign(spec=spec, record=record):
                    self.specs[spec.id], self.records[spec.id] = spec, record
                case SaveCampaign(record=record):
                    self.records[record.id] = record
                case SaveCandidate(candidate=candidate):
                    self.candidates[candidate.id] = candidate
                case SaveMutation(campaign=campaign, mutation=mutation):
                    self.mutations[campaign, mutation.nth] = mutation
                case SaveElite(campaign=campaign, cell=cell, candidate=owner):
                    self.elites[campaign, cell] = owner
                case DemoteCandidate(campaign=campaign, candidate=owner):
                    self.candidates[owner] = replace(self.candidates[owner], outcome="suspect", fitness=None)
                    self.elites = {key: value for key, value in self.elites.items() if value != owner}
                case SaveSpending(campaign=campaign, cost=cost):
                    self.spent[campaign] = self.spent.get(campaign, ZERO).plus(cost)
                case SaveJob(job=job):
                    self.jobs[job.id] = job
                    if job.state is JobState.SETTLED:
                        self.settled[job.id] = self.settled.get(job.id, 0) + 1
                    if isinstance(job.spec.work, BuildSpec):
                        self.sources[CandidateId(job.id.rpartition(".")[0])] = job.spec.work.source
                case _:
                    pass

    def loaded(self) -> list[Loaded]:
        """What a restarted daemon would read."""
        return [self._loaded(id_) for id_, record in self.records.items() if record.state not in ENDED]

    def mutations_of(self, campaign: CampaignId) -> list[Mutation]:
        """Mutations of a campaign's prompts in the order of asking."""
        return [mutation for (of, _), mutation in sorted(self.mutations.items()) if of == campaign]

    def _loaded(self, id_: CampaignId) -> Loaded:
        spec = self.specs[id_]
        mine = sorted((c for c in self.candidates.values() if campaign_of(c.id) == id_), key=lambda c: c.ordinal)
        answered: dict[tuple[str, str], int] = {}
        for candidate in mine:
            if candidate.operator is not Operator.INITIAL and candidate.outcome != DiscardReason.NO_RECORDING:
                key = (candidate.parent_source, candidate.operator.value)
                answered[key] = answered.get(key, 0) + 1
        repaired = {c.parent for c in mine if c.operator is Operator.REPAIR}
        told = sorted((c for c in mine if c.told is not None), key=lambda c: c.told.nth if c.told else 0)
        missed = DiscardReason.NO_RECORDING
        return Loaded(
            spec=spec,
            record=self.records[id_],
            open_candidates=[c for c in mine if c.is_open],
            initial=next((c for c in mine if c.operator is Operator.INITIAL), None),
            elites=[
                as_elite(self.candidates[owner], baseline_speedup(self.candidates[owner], spec.baseline))
                for (of, _), owner in self.elites.items()
                if of == id_
            ],
            broken=[as_broken(c) for c in told if learning.is_repairable(spec, c) and c.id not in repaired],
            normals={c.normal for c in mine if c.normal},
            shapes={c.shape for c in mine if c.shape},
            answered=answered,
            closed={(c.parent_source, c.operator.value) for c in mine if c.outcome == missed},
            outcomes=[learning.outcome_of(c, spec) for c in told if c.outcome != missed],
            mutations=self.mutations_of(id_),
            migrants=[c for c in mine if c.operator is Operator.MIGRATE],
            tuning=[c for c in mine if c.operator is Operator.TUNE or c.space is not None],
            last_asked={c.operator: c.asked.at for c in mine if c.operator in learning.PERIODIC},
            told=max((c.told.nth for c in told if c.told is not None), default=0),
            spent=self.spent.get(id_, ZERO),
            next_ordinal=max((c.ordinal for c in mine), default=-1) + 1,
        )
