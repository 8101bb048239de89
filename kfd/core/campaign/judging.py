"""What a verdict makes of a candidate. Pure functions; the machine only applies them."""

from __future__ import annotations

from dataclasses import replace

from kfd.base.evidence import from_facts
from kfd.base.failure import Bug
from kfd.base.work import (
    CHECKED_ONLY,
    INCUMBENT,
    INITIAL,
    BuildResult,
    Report,
    RunResult,
    Speedup,
    Verdict,
    VerdictCode,
)
from kfd.core.campaign.state import CampaignSpec, Candidate, CandidateState
from kfd.core.fleet.model import Fact
from kfd.core.search import fitness as ladder
from kfd.core.search.archive import AddResult, Cell, Elite
from kfd.core.search.axes import extra_levels
from kfd.core.search.bandit import Arm
from kfd.core.search.compiled import refined
from kfd.core.search.crowding import Crowd
from kfd.core.search.operators import Operator
from kfd.core.search.proposals import Broken

__all__ = [
    "REPAIRABLE",
    "as_broken",
    "as_elite",
    "bandit_shifted",
    "baseline_speedup",
    "beats_rival",
    "best_improved",
    "built_cell",
    "built_extra",
    "cell_improved",
    "crowded",
    "equals_rival",
    "judged",
    "judged_fact",
]

REPAIRABLE = frozenset(
    {
        VerdictCode.COMPILE_ERROR,
        VerdictCode.LOAD_ERROR,
        VerdictCode.RUNTIME_ERROR,
        VerdictCode.TIMEOUT,
        VerdictCode.RESOURCE_LIMIT,
        VerdictCode.INCORRECT,
    }
)
"""Verdicts whose text may help a model to mend the kernel."""


def baseline_speedup(candidate: Candidate, baseline: str) -> Speedup:
    """The speedup that fitness is computed from. The initial kernel is 1 against itself.

    Raises Bug when a correct candidate was not measured against its campaign's baseline.
    """
    found = candidate.speedup(baseline)
    if found is not None:
        return found
    if candidate.operator is not Operator.INITIAL or baseline != "initial":
        raise Bug(f"{candidate.id} is correct but was not measured against {baseline}")
    other = candidate.speedups[0] if candidate.speedups else None
    return Speedup(
        baseline="initial",
        value=1.0,
        low=1.0,
        high=1.0,
        rounds=other.rounds if other else 0,
        worst_case=other.worst_case if other else "",
        worst_value=1.0,
    )


def beats_rival(candidate: Candidate, *, is_initial: bool) -> bool:
    """Whether it was clearly faster than its rival, the initial kernel or the incumbent, in the same rounds."""
    speed = _over_rival(candidate, is_initial)
    return speed is not None and speed.low > 1.0


def equals_rival(candidate: Candidate, *, is_initial: bool) -> bool:
    """Whether it was not slower than its rival beyond noise, in the same rounds."""
    speed = _over_rival(candidate, is_initial)
    return speed is not None and speed.high >= 1.0


def _over_rival(candidate: Candidate, is_initial: bool) -> Speedup | None:
    return candidate.speedup(INITIAL if is_initial else INCUMBENT)


def judged(
    spec: CampaignSpec, candidate: Candidate, verdict: Verdict, result: RunResult | None
) -> tuple[Candidate, Speedup | None]:
    """The candidate with its verdict and fitness, and its speedup when it is correct."""
    candidate = replace(
        candidate,
        state=CandidateState.JUDGED,
        outcome=verdict.code.value,
        text=verdict.text,
        speedups=result.speedups if result is not None else (),
    )
    if verdict.code is VerdictCode.OK and spec.target == CHECKED_ONLY:
        # Right, and nothing else is known of it: the target does not time.
        return candidate, None
    speed = baseline_speedup(candidate, spec.baseline) if verdict.code is VerdictCode.OK else None
    score = ladder.fitness(verdict.code, speed.value if speed else None, spec.target_speedup)
    return replace(candidate, fitness=score), speed


def as_elite(candidate: Candidate, speed: Speedup, fitness: float | None = None) -> Elite:
    """A correct candidate as the archive takes it, with its own fitness unless another is given.

    Raises Bug when it has no artifact.
    """
    if candidate.artifact is None:
        raise Bug(f"{candidate.id} ran without an artifact")
    return Elite(
        candidate=candidate.id,
        ordinal=candidate.ordinal,
        generation=candidate.generation,
        cell=candidate.cell or (0, 0, 0),
        fitness=(candidate.fitness or 0.0) if fitness is None else fitness,
        speedup=speed.value,
        low=speed.low,
        high=speed.high,
        source=candidate.source,
        artifact=candidate.artifact,
        length=candidate.length,
        extra=candidate.extra,
    )


def built_cell(candidate: Candidate, report: Report) -> Cell | None:
    """Its cell once it is built: what the compiled form shows goes before what the source says."""
    facts = report.detail.facts if isinstance(report.detail, BuildResult) else ()
    return None if candidate.cell is None else refined(candidate.cell, from_facts(facts))


def built_extra(spec: CampaignSpec, candidate: Candidate, report: Report, initial: Candidate | None) -> tuple[int, ...]:
    """Its levels on the further axes that the campaign has. ``initial``: the task's own kernel."""
    facts = report.detail.facts if isinstance(report.detail, BuildResult) else ()
    length = initial.length if initial is not None else 0
    return extra_levels(spec.search.axes, length=candidate.length, initial_length=length, facts=facts)


def as_broken(candidate: Candidate) -> Broken:
    """A failed candidate as the search takes it."""
    return Broken(
        candidate=candidate.id,
        ordinal=candidate.ordinal,
        generation=candidate.generation,
        depth=candidate.repair_depth,
        source=candidate.source,
        cell=candidate.cell,
        fitness=candidate.fitness or 0.0,
    )


def judged_fact(spec: CampaignSpec, candidate: Candidate, speed: Speedup | None, *, is_elite: bool) -> Fact:
    """``candidate.judged``."""
    return Fact(
        kind="candidate.judged",
        campaign=spec.id,
        body=(
            ("candidate", candidate.id),
            ("verdict", candidate.outcome),
            ("operator", candidate.operator.value),
            ("strategy", candidate.asked.strategy or None),
            ("origin", candidate.origin),
            ("model", candidate.model or None),
            ("variant", candidate.asked.variant or None),
            ("hints", " ".join(candidate.asked.words) or None),
            ("reaction", candidate.asked.reaction or None),
            ("point", " ".join(f"{name}={value}" for name, value in candidate.values) or None),
            ("generation", candidate.generation),
            ("speedup", speed.value if speed else None),
            ("low", speed.low if speed else None),
            ("high", speed.high if speed else None),
            ("baseline", speed.baseline if speed else None),
            ("rounds", speed.rounds if speed else None),
            ("elite", is_elite),
        ),
    )


def bandit_shifted(spec: CampaignSpec, before: Arm | None, now: Arm | None) -> list[Fact]:
    """``bandit.shifted``: another model, operator and prompt bring most for their cost."""
    if now is None or now == before:
        return []
    was = f"{before.model} {before.operator} {before.prompt}" if before is not None else None
    body = (("model", now.model), ("operator", now.operator), ("variant", now.prompt), ("before", was))
    return [Fact(kind="bandit.shifted", campaign=spec.id, body=body)]


def cell_improved(spec: CampaignSpec, elite: Elite, added: AddResult) -> Fact:
    """``archive.improved``."""
    return Fact(
        kind="archive.improved",
        campaign=spec.id,
        body=(
            ("candidate", elite.candidate),
            ("cell", ",".join(map(str, elite.niche))),
            ("status", added.status.name.lower()),
            ("replaced", added.replaced),
            ("gain", added.improvement),
        ),
    )


def crowded(spec: CampaignSpec, crowd: Crowd) -> Fact:
    """``search.crowded``: the grid hardly tells this campaign's kernels apart."""
    return Fact(
        kind="search.crowded",
        campaign=spec.id,
        body=(
            ("cell", ",".join(map(str, crowd.cell))),
            ("share", round(crowd.share, 4)),
            ("correct", crowd.correct),
        ),
    )


def best_improved(spec: CampaignSpec, best: Elite, speed: Speedup) -> Fact:
    """``best.improved``."""
    return Fact(
        kind="best.improved",
        campaign=spec.id,
        body=(
            ("candidate", best.candidate),
            ("speedup", best.speedup),
            ("low", best.low),
            ("high", best.high),
            ("baseline", spec.baseline),
            ("rounds", speed.rounds),
        ),
    )
