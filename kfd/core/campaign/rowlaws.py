"""What the rows of a campaign are by themselves, before any decision is made again: nothing is missing, doubled, out
of its place, or told otherwise than it was judged. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kfd.base.work import CHECKED_ONLY, VerdictCode
from kfd.core.campaign.mutation import Mutation, MutationState, mutation_id
from kfd.core.campaign.state import CampaignSpec, Candidate, CandidateState, DiscardReason
from kfd.core.search.fitness import LEAST_CORRECT, fitness
from kfd.core.search.operators import Operator

__all__ = ["Difference", "candidate_difference", "mutation_difference", "row_difference"]

_UNTOLD = ("", VerdictCode.SUSPECT, DiscardReason.INCIDENT, DiscardReason.CANCELLED, DiscardReason.BUDGET)
"""Outcomes that the search need not have been told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first decision that comes out otherwise."""

    candidate: str
    """Id of the candidate, or of the mutation of a prompt."""
    what: str
    stored: str
    decided: str


def candidate_difference(stored: Candidate, decided: Candidate) -> Difference | None:
    """The first thing that was decided about a candidate otherwise than its row has it."""
    mine, again = stored.asked, decided.asked
    pairs: tuple[tuple[str, object, object], ...] = (
        ("operator", stored.operator.value, decided.operator.value),
        ("point", (stored.parent, stored.values), (decided.parent, decided.values))
        if stored.operator is Operator.TUNE
        else ("parent", stored.parent, decided.parent),
        ("parent's source", stored.parent_source, decided.parent_source),
        ("origin", stored.origin, decided.origin),
        ("generation", stored.generation, decided.generation),
        ("repairs in a row", stored.repair_depth, decided.repair_depth),
        ("inspirations", stored.inspirations, decided.inspirations),
        ("values", stored.values, decided.values),
        ("place among equal questions", stored.nth, decided.nth),
        ("hints", mine.hints, again.hints),
        ("model", mine.model, again.model),
        ("prompt variant", mine.variant, again.variant),
        ("strategy", mine.strategy, again.strategy),
        ("island", mine.island, again.island),
        ("plateau reaction", mine.reaction, again.reaction),
        ("parent's cell", mine.parent_cell, again.parent_cell),
        ("parent's fitness", mine.parent_fitness, again.parent_fitness),
    )
    for what, kept, made in pairs:
        if kept != made:
            return Difference(candidate=stored.id, what=what, stored=f"{kept}", decided=f"{made}")
    return None


def row_difference(spec: CampaignSpec, candidates: Sequence[Candidate]) -> Difference | None:
    """The first candidate that is not in its place, or of which the search was told otherwise than it was judged.

    ``candidates``: all of the campaign.
    """
    at = 0
    for place, one in enumerate(sorted(candidates, key=lambda one: one.ordinal)):
        if one.ordinal != place:
            return _differs(one, "place in the order of asking", one.ordinal, place)
        if one.asked.at < at:
            return _differs(one, "outcomes known when it was asked for", one.asked.at, f"{at} or more")
        at = one.asked.at
        difference = _told_difference(spec, one)
        if difference is not None:
            return difference
    places = [one for one in candidates if one.told is not None]
    for place, one in enumerate(sorted(places, key=_nth), 1):
        if _nth(one) != place:
            return _differs(one, "place in the order of telling", _nth(one), place)
    return None


def _told_difference(spec: CampaignSpec, one: Candidate) -> Difference | None:
    """What the search was told follows from the verdict; a winner that was demoted since has lost its own."""
    told = one.told
    if told is None:
        if one.operator is Operator.INITIAL or one.outcome in _UNTOLD:
            return None
        return _differs(one, "what was told of it", "nothing", one.outcome)
    if told.nth <= one.asked.at:
        return _differs(one, "place in the order of telling", told.nth, f"after {one.asked.at}")
    score = 0.0
    if one.state is CandidateState.JUDGED and spec.target != CHECKED_ONLY:
        verdict = VerdictCode.OK if one.outcome == VerdictCode.SUSPECT else one.outcome
        code = next((code for code in VerdictCode if code == verdict), None)
        if code is None:
            return _differs(one, "verdict", one.outcome, "one that there is")
        speed = one.speedup(spec.baseline)
        if code is VerdictCode.OK and (speed is None or not speed.value > 0 or one.artifact is None):
            return _differs(one, "measurement", "none", f"a speedup over {spec.baseline} and what was measured")
        score = fitness(code, speed.value if speed is not None else None, spec.target_speedup) or 0.0
    if told.fitness != score:
        return _differs(one, "fitness as it was told", told.fitness, score)
    if (told.kept and score < LEAST_CORRECT) or (told.best and not told.kept):
        return _differs(one, "place in the archive", "best" if told.best else "kept", "none")
    return None


def mutation_difference(spec: CampaignSpec, mutations: Sequence[Mutation]) -> Difference | None:
    """The first mutation that is not in its place, or that made what no mutation in its state makes.

    ``mutations``: all of the campaign in the order of asking.
    """
    asked_at = 0
    for place, one in enumerate(mutations, 1):
        if one.nth != place or one.asked_at < asked_at:
            return _mutation(spec, one, "place in the order of asking", f"{one.nth} after {one.asked_at}", f"{place}")
        asked_at = one.asked_at
        if (one.ended is None) != (one.state is MutationState.ASKING):
            return _mutation(spec, one, "end", f"{one.ended}", one.state.value)
        if one.state is not MutationState.ACCEPTED and (one.variant, one.generation, one.regions) != ("", 0, ()):
            return _mutation(spec, one, "new variant", one.variant or "a text", f"none: it is {one.state.value}")
    before = (0, 0)
    for place, one in enumerate(sorted(mutations, key=_ended_nth), 1):
        if one.ended is None:
            continue
        now = (one.ended.at, one.ended.before)
        if one.ended.nth + sum(other.ended is None for other in mutations) != place or now < before:
            return _mutation(spec, one, "place in the order of ending", f"{one.ended}", f"{place}, {before} or later")
        if one.ended.at < one.asked_at:
            return _mutation(spec, one, "end", f"after {one.ended.at} outcomes", f"asked after {one.asked_at}")
        before = now
    return None


def _nth(candidate: Candidate) -> int:
    return candidate.told.nth if candidate.told is not None else 0


def _ended_nth(mutation: Mutation) -> int:
    return mutation.ended.nth if mutation.ended is not None else 0


def _differs(one: Candidate, what: str, stored: object, decided: object) -> Difference:
    return Difference(candidate=one.id, what=what, stored=f"{stored}", decided=f"{decided}")


def _mutation(spec: CampaignSpec, one: Mutation, what: str, stored: str, decided: str) -> Difference:
    return Difference(candidate=mutation_id(spec.id, one.nth), what=what, stored=stored, decided=decided)
