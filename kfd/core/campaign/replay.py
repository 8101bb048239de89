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

from kfd.base.ids import campaign_of
from kfd.base.work import VerdictCode
from kfd.core.campaign import judging, learning
from kfd.core.campaign.evolution import wanted
from kfd.core.campaign.lineage import Lineage, asked_as_migrant
from kfd.core.campaign.mutation import Mutation, accepted, first_variant, mutation_id, variant_of
from kfd.core.campaign.questions import Questions
from kfd.core.campaign.rowlaws import Difference, candidate_difference, mutation_difference, row_difference
from kfd.core.campaign.state import CampaignSpec, Candidate, CandidateState, DiscardReason
from kfd.core.campaign.tuning import Tuning, is_swept, point_of
from kfd.core.dice import Dice
from kfd.core.search.archive import Elite, Niche
from kfd.core.search.fitness import fitness
from kfd.core.search.operators import Operator
from kfd.core.search.prompt_archive import Region, variant_id
from kfd.core.search.proposals import Broken, Proposal
from kfd.core.search.search import RULES, Search

__all__ = ["Difference", "Replayed", "replay"]

MOST_OPEN = 3
"""Mutations of one update, the most that a policy allows: only those of the last update can be open."""


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
        self._last_asked: dict[Operator, int] = {}
        self._tuning = Tuning(spec.search.sweep, Dice(spec.seed), spec.baseline, limit=None)
        self._length = initial.length if initial is not None else 0
        self._questions = Questions(spec.budget_candidates, {})
        self._lineage = Lineage()
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
            self._questions.miss(candidate)
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

    def decide(self, stored: Candidate) -> Difference | None:
        """Decide about a candidate again; what comes out otherwise than its row has it."""
        is_time = self._lineage.is_time(self._questions.used)
        nth = self._questions.charge((stored.parent_source, stored.operator.value))
        match stored.operator:
            case Operator.TUNE:
                return self._point(stored, nth)
            case Operator.MIGRATE:
                return self._migrant(stored, nth, is_time=is_time)
            case _:
                proposal = self.ask(stored)
        if proposal is None:
            ask = stored.operator.value
            return Difference(candidate=stored.id, what="operator", stored=ask, decided="nothing left to ask")
        again = learning.asked_for(proposal, stored.id, stored.ordinal, nth, stored.asked.at)
        return candidate_difference(stored, again)

    def _point(self, stored: Candidate, nth: int) -> Difference | None:
        """Template and values of a sweep's next point."""
        found = self._tuning.next()
        if found is None:
            point = f"{(stored.parent, stored.values)}"
            return Difference(candidate=stored.id, what="point", stored=point, decided="None")
        again = point_of(*found, stored.id, stored.ordinal, nth, stored.asked.at)
        difference = candidate_difference(stored, again)
        if difference is None:
            self._tuning.note(replace(stored, state=CandidateState.DRAFTING, told=None))
        return difference

    def _migrant(self, stored: Candidate, nth: int, *, is_time: bool) -> Difference | None:
        """What was on offer is another campaign's history; that it may be taken, and as what, is decided here."""
        origin, mine = stored.origin, self._spec.id
        if origin is None or campaign_of(origin) == mine or self._lineage.has_taken(origin) or not is_time:
            why = "an elite of another campaign that was not taken before, one candidate in four"
            return Difference(candidate=stored.id, what="origin", stored=f"{origin}", decided=why)
        self._lineage.note(stored)
        # Source, cell and generation are the elite's, which is not here.
        asked = asked_as_migrant(stored.asked.at, first_variant(self._spec).id, stored.asked.parent_cell)
        again = replace(stored, parent=None, inspirations=(), values=(), repair_depth=0, nth=nth, asked=asked)
        return candidate_difference(stored, again)

    def ask(self, candidate: Candidate) -> Proposal | None:
        """What is decided about a candidate now."""
        elites = [self._elites[cell] for cell in sorted(self._elites)]
        told = candidate.asked.at
        shown = learning.view(elites, self._broken, self._questions.closed, self._length, told, self._last_asked)
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
        self._generations = {first_variant(spec).id: 0}
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
            generation = self._generations[mutation.parent] + 1
            if mutation.generation != generation:
                return self._differs(mutation.nth, "generation", f"{mutation.generation}", f"{generation}")
            # A text that the archive has dropped may be found again, and counts anew.
            self._regions[variant.id], self._generations[variant.id] = variant.regions, generation
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
    if spec.rules != RULES:
        raise ValueError(f"{spec.id} was begun by another kfd, whose search decided otherwise")
    prompts = _Prompts(spec, mutations)
    stage = _Stage(spec, next((one for one in candidates if one.operator is Operator.INITIAL), None), prompts)
    heard = decisions = 0
    mutations = sorted(mutations, key=lambda one: one.nth)
    wrong = row_difference(spec, candidates)
    if wrong is not None:
        return Replayed(decisions=0, told=0, difference=wrong)

    def found(difference: Difference | None) -> Replayed:
        return Replayed(decisions=decisions, told=heard, mutations=prompts.proved, difference=difference)

    for candidate in asked:
        difference = stage.evolve(candidate.ordinal)
        while difference is None and heard < len(told) and _nth(told[heard]) <= candidate.asked.at:
            difference = stage.tell(told[heard]) or stage.evolve(candidate.ordinal)
            heard += 1
        if difference is not None:
            return found(difference)
        difference = stage.decide(candidate)
        if difference is not None:
            return found(difference)
        # A migrant is no decision of this campaign's search.
        decisions += candidate.operator is not Operator.MIGRATE
    difference = stage.evolve(None)
    while difference is None and heard < len(told):
        difference = stage.tell(told[heard]) or stage.evolve(None)
        heard += 1
    return found(difference or prompts.left() or mutation_difference(spec, mutations))


def _nth(candidate: Candidate) -> int:
    return candidate.told.nth if candidate.told is not None else 0
