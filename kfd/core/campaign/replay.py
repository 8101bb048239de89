"""Replay: every decision of a stored campaign made again from its rows, and compared.

A candidate's row says how many others the search had been told of when it was asked for; those others' rows say what
was told. So the search can be brought to that point once more and asked. Pure; costs as much as the deciding did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kfd.base.ids import CandidateId
from kfd.base.work import VerdictCode
from kfd.core.campaign import judging, learning
from kfd.core.campaign.state import CampaignSpec, Candidate, CandidateState, DiscardReason
from kfd.core.campaign.tuning import Tuning, is_swept
from kfd.core.dice import Dice
from kfd.core.search.archive import Cell, Elite
from kfd.core.search.fitness import fitness
from kfd.core.search.operators import Operator
from kfd.core.search.proposals import Broken, Proposal
from kfd.core.search.search import Search
from kfd.core.search.tuning import Values

__all__ = ["Difference", "Replayed", "replay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first decision that comes out otherwise."""

    candidate: CandidateId
    what: str
    stored: str
    decided: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay proved."""

    decisions: int
    """Decisions that came out as they are stored."""
    told: int
    """Candidates that the search was told of on the way."""
    difference: Difference | None = None


class _Stage:
    """The campaign as it stood when a candidate was asked for."""

    def __init__(self, spec: CampaignSpec, initial: Candidate | None) -> None:
        self._spec = spec
        self._search = Search(spec.search, Dice(spec.seed), learning.FIRST_PROMPT)
        self._elites: dict[Cell, Elite] = {}
        self._broken: list[Broken] = []
        self._closed: set[tuple[str, str]] = set()
        self._last_asked: dict[Operator, int] = {}
        self._tuning = Tuning(spec.search.sweep, Dice(spec.seed), spec.baseline, limit=None)
        self._length = initial.length if initial is not None else 0
        if initial is not None and initial.artifact is not None and initial.speedups:
            self._begin(initial)

    def _begin(self, initial: Candidate) -> None:
        speed = judging.baseline_speedup(initial, self._spec.baseline)
        # Made again: a winner that was demoted at the end has lost it, and this may be the initial kernel.
        score = fitness(VerdictCode.OK, speed.value, self._spec.target_speedup)
        elite = judging.as_elite(initial, speed, fitness=score)
        self._elites[elite.cell] = elite
        self._search.begin(elite)

    def tell(self, candidate: Candidate) -> None:
        """What became of one candidate, as it was told."""
        if candidate.outcome == DiscardReason.NO_RECORDING:
            self._closed.add((candidate.parent_source, candidate.operator.value))
            return
        outcome = learning.outcome_of(candidate, self._spec)
        if outcome.elite is not None and outcome.kept:
            self._elites[outcome.elite.cell] = outcome.elite
        elif outcome.elite is None and learning.is_repairable(self._spec, candidate):
            self._broken.append(judging.as_broken(candidate))
        self._search.tell(outcome)
        if is_swept(candidate) or candidate.operator is Operator.TUNE:
            self._tuning.note(candidate)

    def point(self, candidate: Candidate) -> tuple[CandidateId, Values] | None:
        """Template and values of a sweep's next point, where ``candidate`` is what was decided then."""
        found = self._tuning.next()
        self._tuning.note(replace(candidate, state=CandidateState.DRAFTING, told=None))
        return None if found is None else (found[0].id, found[1])

    def ask(self, candidate: Candidate) -> Proposal | None:
        """What is decided about a candidate now."""
        elites = [self._elites[cell] for cell in sorted(self._elites)]
        told = candidate.asked.at
        shown = learning.view(elites, self._broken, self._closed, self._length, told, self._last_asked)
        proposal = self._search.ask(shown, candidate.ordinal)
        if candidate.operator in learning.PERIODIC:
            self._last_asked[candidate.operator] = told
        if candidate.operator is Operator.REPAIR:
            self._broken = [failure for failure in self._broken if failure.candidate != candidate.parent]
        return proposal


def replay(spec: CampaignSpec, candidates: Sequence[Candidate]) -> Replayed:
    """Decide again about every candidate of a campaign; stops at the first difference.

    ``candidates``: all of them. Raises ValueError when they were asked for by a kfd that did not store how.
    """
    asked = sorted((one for one in candidates if one.operator is not Operator.INITIAL), key=lambda one: one.ordinal)
    told = sorted((one for one in asked if one.told is not None), key=lambda one: one.told.nth if one.told else 0)
    if any(not one.asked.variant for one in asked):
        raise ValueError(f"{spec.id} was asked for by an older kfd, which did not store what its search was told")
    initial = next((one for one in candidates if one.operator is Operator.INITIAL), None)
    stage = _Stage(spec, initial)
    heard = decisions = 0
    for candidate in asked:
        while heard < len(told) and _nth(told[heard]) <= candidate.asked.at:
            stage.tell(told[heard])
            heard += 1
        if candidate.operator is Operator.MIGRATE:
            # Not decided by this campaign's search: what was on offer is another campaign's history.
            continue
        if candidate.operator is Operator.TUNE:
            difference = _point_difference(candidate, stage.point(candidate))
        else:
            difference = _difference(candidate, stage.ask(candidate))
        if difference is not None:
            return Replayed(decisions=decisions, told=heard, difference=difference)
        decisions += 1
    return Replayed(decisions=decisions, told=heard)


def _nth(candidate: Candidate) -> int:
    return candidate.told.nth if candidate.told is not None else 0


def _point_difference(candidate: Candidate, decided: tuple[CandidateId, Values] | None) -> Difference | None:
    stored = (candidate.parent, candidate.values)
    if stored == decided:
        return None
    return Difference(candidate=candidate.id, what="point", stored=f"{stored}", decided=f"{decided}")


def _difference(candidate: Candidate, proposal: Proposal | None) -> Difference | None:
    if proposal is None:
        ask = candidate.operator.value
        return Difference(candidate=candidate.id, what="operator", stored=ask, decided="nothing left to ask")
    again = learning.asked(proposal, candidate.asked.at)
    pairs: tuple[tuple[str, object, object], ...] = (
        ("operator", candidate.operator.value, proposal.operator.value),
        ("parent", candidate.parent, proposal.parent),
        ("parent's source", candidate.parent_source, proposal.parent_source),
        ("generation", candidate.generation, proposal.generation),
        ("repairs in a row", candidate.repair_depth, proposal.repair_depth),
        ("inspirations", candidate.inspirations, proposal.inspirations),
        ("hints", candidate.asked.hints, again.hints),
        ("model", candidate.asked.model, again.model),
        ("prompt variant", candidate.asked.variant, again.variant),
        ("strategy", candidate.asked.strategy, again.strategy),
        ("island", candidate.asked.island, again.island),
        ("plateau reaction", candidate.asked.reaction, again.reaction),
        ("parent's cell", candidate.asked.parent_cell, again.parent_cell),
        ("parent's fitness", candidate.asked.parent_fitness, again.parent_fitness),
    )
    for what, stored, decided in pairs:
        if stored != decided:
            return Difference(candidate=candidate.id, what=what, stored=f"{stored}", decided=f"{decided}")
    return None
