"""Values of a campaign: what it was asked to do, where it stands, and its candidates."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from kfd.base.digest import Digest
from kfd.base.ids import CampaignId, CandidateId, JobId, candidate_id, job_id
from kfd.base.instant import Span
from kfd.base.work import (
    AdmitSpec,
    BuildResult,
    BuildSpec,
    JobSpec,
    Limits,
    MeasurementPlan,
    Report,
    RunResult,
    RunSpec,
    Speedup,
    Verdict,
    VerdictCode,
)
from kfd.core.fleet.model import Job
from kfd.core.search.archive import Cell
from kfd.core.search.hints import hint_text
from kfd.core.search.operators import Operator
from kfd.core.search.prompt_archive import Region
from kfd.core.search.proposals import ANY_MODEL, SearchPolicy
from kfd.core.search.terms import ModelTerms
from kfd.core.search.transitions import Direction
from kfd.core.search.tuning import Declared, Values

__all__ = [
    "ADMIT",
    "BUILD",
    "CONFIRM",
    "ENDED",
    "RUN",
    "VERIFY",
    "Asked",
    "CampaignRecord",
    "CampaignSpec",
    "CampaignState",
    "Candidate",
    "CandidateState",
    "DiscardReason",
    "Told",
    "admit_job",
    "build_job",
    "is_built",
    "run_job",
    "run_result_of",
]

ADMIT, BUILD, RUN, CONFIRM, VERIFY = "admit", "build", "run", "confirm", "verify"
"""Purposes of jobs."""


class CampaignState(StrEnum):
    """``baselining -> running <-> paused -> verifying -> finished | failed | cancelled``."""

    BASELINING = "baselining"
    RUNNING = "running"
    PAUSED = "paused"
    VERIFYING = "verifying"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({CampaignState.FINISHED, CampaignState.FAILED, CampaignState.CANCELLED})


class CandidateState(StrEnum):
    """``drafting -> building -> running -> (confirming ->) judged``, leaving early to ``discarded``."""

    DRAFTING = "drafting"
    BUILDING = "building"
    RUNNING = "running"
    CONFIRMING = "confirming"
    """Measured a second time, in fresh processes and with fresh inputs, before it displaces anything."""
    JUDGED = "judged"
    DISCARDED = "discarded"


class DiscardReason(StrEnum):
    """Reasons of ours, beside those of the answer parser."""

    NO_RECORDING = "no_recording"
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    INCIDENT = "incident"
    CANCELLED = "cancelled"
    BUDGET = "budget"
    """Its call failed after it had used tokens, and asking again cannot be paid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSpec:
    """What was asked for. Never changes after submission."""

    id: CampaignId
    name: str
    task: Digest
    task_name: str
    kernel_path: str
    toolchain: str
    target: str
    flags: tuple[str, ...]
    build_limits: Limits
    run_limits: Limits
    plan: MeasurementPlan
    baseline: str
    """``reference`` or ``initial``: what fitness is measured against."""
    target_speedup: float
    generator: str
    budget_candidates: int
    budget_ns: Span
    seed: int
    secret: bytes
    """Never leaves the daemon: the seeds of all run jobs derive from it."""
    in_flight: int
    search: SearchPolicy
    idempotency_key: str
    submitted_at: str
    """RFC 3339 wall time, for people."""
    simulated: bool = False
    validate_only: bool = False
    """Prove the task and its kernel, ask nothing."""
    regions: tuple[tuple[Region, str], ...] = ()
    """What the first prompt variant says; campaigns of an older kfd have none."""
    group: str = ""
    """Campaigns of one group search for several targets of one task and share their elites; empty for one alone."""
    budget_micro_money: int | None = None
    """Millionths of the currency that model calls may cost; None is no limit, as for the two below."""
    budget_tokens: int | None = None
    """Tokens of prompts and answers together."""
    budget_device_ns: Span | None = None
    """Time on run slots (``spending.device_cost``)."""
    terms: tuple[ModelTerms, ...] = ()
    """Of all models that may be asked, as they were at submission; empty for recordings and people."""
    asks_again: int = 0
    """How often a draft may ask again, with the reason, when an answer holds no usable kernel."""
    rules: int = 0
    """``search.RULES`` at submission; 0 for campaigns of a kfd that did not count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How the search came to ask for a candidate: what it decided, and what it needs to learn from the answer."""

    at: int = 0
    """How many candidates the search had been told of."""
    model: str = ANY_MODEL
    """The model that was asked for; the one that answered is the candidate's."""
    variant: str = ""
    """Id of the prompt variant."""
    strategy: str = ""
    """How the parent was found."""
    reaction: str = ""
    """The plateau reaction in force, or empty."""
    island: int = 0
    hints: tuple[Direction, ...] = ()
    """Directions that the prompt speaks of: (axis, step)."""
    parent_cell: Cell = (0, 0, 0)
    parent_fitness: float = 0.0

    @property
    def words(self) -> tuple[str, ...]:
        """The hints as the prompt says them."""
        return tuple(hint_text(self.parent_cell, direction) for direction in self.hints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the search was told of a candidate. It stays as it was when a winner is demoted later."""

    nth: int
    """Its place in the order of telling, from 1."""
    fitness: float
    kept: bool
    """Whether it became an elite."""
    best: bool
    """Whether it became the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One kernel source with where it came from and what became of it."""

    id: CandidateId
    ordinal: int
    operator: Operator
    parent: CandidateId | None
    parent_source: str
    """Hex SHA-256 of the parent's kernel text, or ``nothing``."""
    inspirations: tuple[CandidateId, ...]
    nth: int
    """How often (parent_source, operator) was answered before."""
    origin: CandidateId | None = None
    """The elite of another campaign of the group that it was taken from; None for all others."""
    generation: int
    repair_depth: int
    state: CandidateState = CandidateState.DRAFTING
    outcome: str = ""
    """Verdict code when judged, reason when discarded, empty while in flight."""
    text: str = ""
    model: str = ""
    source: str = ""
    """Hex SHA-256 of the kernel text; empty until an answer was taken."""
    normal: str = ""
    """Hex SHA-256 of the source without comments and spacing: equal normal forms are duplicates."""
    shape: str = ""
    """Hex SHA-256 of the source without the names of its variables: equal shapes are near-duplicates."""
    length: int = 0
    """Characters of the kernel text."""
    cell: Cell | None = None
    extra: tuple[int, ...] = ()
    """Its levels on further axes, once it is built."""
    artifact: Digest | None = None
    fitness: float | None = None
    speedups: tuple[Speedup, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    worker: str = ""
    rival: CandidateId | None = None
    """Whom it is measured against, side by side, before it displaces anything."""
    rival_artifact: Digest | None = None
    confirmations: int = 0
    """How often it has been."""
    space: Declared | None = None
    """What a template declares."""
    values: Values = ()
    """What a point of a sweep has chosen."""
    asked: Asked = Asked()
    told: Told | None = None
    """None while it is in flight, and for what the search never learns of (incidents, cancellations, suspects)."""

    @property
    def is_open(self) -> bool:
        """Whether it still needs something."""
        return self.state not in (CandidateState.JUDGED, CandidateState.DISCARDED)

    @property
    def counts(self) -> bool:
        """Whether it is charged to the budget: an answer was got, or is still waited for."""
        return self.outcome not in (DiscardReason.NO_RECORDING, DiscardReason.CANCELLED)

    def speedup(self, baseline: str) -> Speedup | None:
        """Its speedup over one baseline."""
        return next((speed for speed in self.speedups if speed.baseline == baseline), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecord:
    """The row of a campaign: what changes about it."""

    id: CampaignId
    state: CampaignState
    reason: str = ""
    best: CandidateId | None = None
    final_speedups: tuple[Speedup, ...] = ()
    verify_note: str = ""
    verifications: int = 0
    active_ns: Span = 0
    incidents: int = 0
    admitted: bool = False
    """Whether a worker has proved the task: it refuses wrong answers."""
    roofline: float | None = None
    """Share of a plain copy's speed that the best reaches (``roofline.roofline_share``); None while it is not known."""


def build_job(spec: CampaignSpec, candidate: Candidate, source: str) -> Job:
    """The build job of a candidate. Derived from rows alone, so that a restart makes the same job."""
    return Job(
        id=job_id(candidate.id, BUILD),
        campaign=spec.id,
        spec=JobSpec(
            work=BuildSpec(
                task=spec.task,
                source=source,
                kernel_path=spec.kernel_path,
                toolchain=spec.toolchain,
                target=spec.target,
                flags=spec.flags,
            ),
            limits=spec.build_limits,
        ),
    )


def admit_job(spec: CampaignSpec) -> Job:
    """The job that proves a task before any candidate is judged."""
    job = job_id(candidate_id(spec.id, 0), ADMIT)
    return Job(
        id=job,
        campaign=spec.id,
        spec=JobSpec(
            work=AdmitSpec(task=spec.task, toolchain=spec.toolchain, target=spec.target, seed=_seed(spec, job)),
            limits=spec.run_limits,
        ),
    )


def _seed(spec: CampaignSpec, job: JobId) -> bytes:
    return hashlib.sha256(spec.secret + b"\0run\0" + job.encode()).digest()


def run_job(
    spec: CampaignSpec,
    candidate: CandidateId,
    artifact: Digest,
    initial: Digest | None,
    purpose: str,
    incumbent: Digest | None = None,
) -> Job:
    """The run job of a candidate: ``run``, its ``confirm``, or the fresh measurement of a winner (``verify``).

    ``incumbent`` is timed in the same rounds; one that is the initial kernel is there already.

    The seed derives from the campaign's secret and the job, so it exists only after the candidate does,
    differs between jobs, and is the same after a restart.
    """
    job = job_id(candidate, purpose)
    return Job(
        id=job,
        campaign=spec.id,
        spec=JobSpec(
            work=RunSpec(
                task=spec.task,
                artifact=artifact,
                initial_artifact=initial,
                toolchain=spec.toolchain,
                target=spec.target,
                seed=_seed(spec, job),
                plan=spec.plan,
                incumbent_artifact=incumbent if incumbent != initial else None,
            ),
            limits=spec.run_limits,
        ),
    )


def run_result_of(report: Report) -> RunResult | None:
    """Measurements of a report."""
    return report.detail if isinstance(report.detail, RunResult) else None


def is_built(verdict: Verdict, report: Report) -> bool:
    """Whether a build left an artifact."""
    return (
        verdict.code is VerdictCode.OK and isinstance(report.detail, BuildResult) and report.detail.artifact is not None
    )
