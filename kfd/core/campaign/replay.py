"""Replay: every decision of a stored campaign made again from its rows, and compared.

A candidate's row says how many others the search had been told of when it was asked for; those others' rows say what
was told. So the search can be brought to that point once more and asked. New prompt variants come between, where their
rows say, and after each outcome the mutations that were asked for then are compared with those that are due. Pure;
costs as much as the deciding did.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kfd.base.ids import CandidateId
from kfd.base.work import VerdictCode
from kfd.core.campaign import judging, learning
from kfd.core.campaign.evolution import wanted
from kfd.core.campaign.mutation import Mutation, accepted, first_variant, mutation_id, variant_of
from kfd.core.campaign.state import CampaignSpec, Candidate, CandidateState, DiscardReason
from kfd.core.campaign.tuning import Tuning, is_swept
from kfd.core.dice import Dice
from kfd.core.search.archive import Elite, Niche
from kfd.core.search.fitness import fitness
from kfd.core.search.operators import Operator
from kfd.core.search.prompt_archive import Region, variant_id
from kfd.core.search.proposals import Broken, Proposal
from kfd.core.search.search import Search
from kfd.core.search.tuning import Values

__all__ = ["Difference", "Replayed", "replay"]

MOST_OPEN = 3
"""Mutations of one update, the most that a policy allows: only those of the last update can be open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first decision that comes out otherwise."""

    candidate: str
    """Id of the candidate, or of the mutation of a prompt."""
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
    mutations: int = 0
    """Mutations of prompts that were due when they were asked for, and whose variants came in their place."""
    difference: Difference | None = None


class _Stage:
    """The campaign as it stood when a candidate was asked for."""

    def __init__(self, spec: CampaignSpec, initial: Candidate | None, prompts: _Prompts) -> None:
        self._spec = spec
        self._search = Search(spec.search, Dice(spec.seed), first_variant(spec))
        self._prompts = prompts
        self._elites: dict[Niche, Elite] = {}
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
        self._elites[elite.niche] = elite
        self._search.begin(elite)

    def tell(self, candidate: Candidate) -> Difference | None:
        """What became of one candidate, as it was told; the first mutation that was not due then."""
        if candidate.outcome == DiscardReason.NO_RECORDING:
            self._closed.add((candidate.parent_source, candidate.operator.value))
            return None
        outcome = learning.outcome_of(candidate, self._spec)
        if outcome.elite is not None and outcome.kept:
            self._elites[outcome.elite.niche] = outcome.elite
        elif outcome.elite is None and learning.is_repairable(self._spec, candidate):
            self._broken.append(judging.as_broken(candidate))
        self._search.tell(outcome)
        if is_swept(candidate) or candidate.operator is Operator.TUNE:
            self._tuning.note(candidate)
        return self._prompts.asked(self._search)

    def evolve(self, before: int | None) -> Difference | None:
        """New prompt variants that came before candidate ``before`` was asked for (None: all that are left)."""
        return self._prompts.feed(self._search, before)

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


class _Prompts:
    """The stored mutations of a campaign, walked through beside its candidates."""

    def __init__(self, spec: CampaignSpec, mutations: Sequence[Mutation]) -> None:
        self._spec = spec
        self._mutations = sorted(mutations, key=lambda one: one.nth)
        self._waiting = deque(accepted(mutations))
        self._regions: dict[str, Mapping[Region, str]] = {first_variant(spec).id: dict(spec.regions)}
        self._seen = 0
        self.proved = 0
        """Mutations that were due when they were asked for."""

    def asked(self, search: Search) -> Difference | None:
        """Compare what is due after an outcome with what was asked for then."""
        now = search.evaluations
        earlier = self._mutations[: self._seen]
        is_open = any(one.ended is None or one.ended.at >= now for one in earlier[-MOST_OPEN:])
        due = [variant.id for variant in wanted(search, self._spec, self._seen, is_open)]
        stored: list[str] = []
        while self._seen < len(self._mutations) and self._mutations[self._seen].asked_at == now:
            stored.append(self._mutations[self._seen].parent)
            self._seen += 1
        if stored != due:
            first = len(earlier) + 1
            return self._differs(first, "prompts to change", f"{stored} after {now} outcomes", f"{due}")
        self.proved += len(stored)
        return None

    def feed(self, search: Search, before: int | None) -> Difference | None:
        """Give the search the variants whose place has come."""
        while self._waiting:
            ended, mutation = self._waiting[0]
            if ended.at != search.evaluations or (before is not None and ended.before > before):
                return None
            self._waiting.popleft()
            variant, parent = variant_of(mutation), self._regions.get(mutation.parent)
            if parent is None or variant.id != variant_id(variant.regions):
                return self._differs(mutation.nth, "new variant", variant.id, variant_id(variant.regions))
            for region in self._spec.search.prompts.pinned:
                if variant.regions.get(region, "") != parent.get(region, ""):
                    return self._differs(mutation.nth, f"pinned {region.value}", "changed", "kept")
            self._regions[variant.id] = variant.regions
            if not search.prompt_evolved(variant):
                return self._differs(mutation.nth, "new variant", variant.id, "refused by the archive")
        return None

    def left(self) -> Difference | None:
        """What no outcome led to."""
        if self._seen < len(self._mutations):
            one = self._mutations[self._seen]
            return self._differs(one.nth, "prompts to change", f"asked after {one.asked_at} outcomes", "never due")
        if self._waiting:
            ended, mutation = self._waiting[0]
            return self._differs(mutation.nth, "new variant", f"after {ended.at} outcomes", "never")
        return None

    def _differs(self, nth: int, what: str, stored: str, decided: str) -> Difference:
        return Difference(candidate=mutation_id(self._spec.id, nth), what=what, stored=stored, decided=decided)


def replay(spec: CampaignSpec, candidates: Sequence[Candidate], mutations: Sequence[Mutation] = ()) -> Replayed:
    """Decide again about every candidate of a campaign; stops at the first difference.

    ``candidates`` and ``mutations``: all of them. Raises ValueError when they were asked for by a kfd that did not
    store how.
    """
    asked = sorted((one for one in candidates if one.operator is not Operator.INITIAL), key=lambda one: one.ordinal)
    told = sorted((one for one in asked if one.told is not None), key=_nth)
    if any(not one.asked.variant for one in asked):
        raise ValueError(f"{spec.id} was asked for by an older kfd, which did not store what its search was told")
    prompts = _Prompts(spec, mutations)
    stage = _Stage(spec, next((one for one in candidates if one.operator is Operator.INITIAL), None), prompts)
    heard = decisions = 0

    def found(difference: Difference | None) -> Replayed:
        return Replayed(decisions=decisions, told=heard, mutations=prompts.proved, difference=difference)

    for candidate in asked:
        difference = stage.evolve(candidate.ordinal)
        while difference is None and heard < len(told) and _nth(told[heard]) <= candidate.asked.at:
            difference = stage.tell(told[heard]) or stage.evolve(candidate.ordinal)
            heard += 1
        if difference is not None:
            return found(difference)
        if candidate.operator is Operator.MIGRATE:
            # Not decided by this campaign's search: what was on offer is another campaign's history.
            continue
        if candidate.operator is Operator.TUNE:
            difference = _point_difference(candidate, stage.point(candidate))
        elif difference is None:
            difference = _difference(candidate, stage.ask(candidate))
        if difference is not None:
            return found(difference)
        decisions += 1
    difference = stage.evolve(None)
    while difference is None and heard < len(told):
        difference = stage.tell(told[heard]) or stage.evolve(None)
        heard += 1
    return found(difference or prompts.left())


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
