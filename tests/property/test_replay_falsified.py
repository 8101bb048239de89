"""What was decided and is written down otherwise, a replay notices: in every row and column, and without a fall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from kfd.base.ids import CandidateId, campaign_of
from kfd.core.campaign.mutation import Mutation, MutationState
from kfd.core.campaign.replay import replay
from kfd.core.campaign.state import CampaignSpec, Candidate
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftEvent
from kfd.core.search.operators import Operator
from kfd.core.search.prompt_archive import Region
from kfd.testing.simulation import Simulation, arrived, drafted, sim_spec
from tests.property.test_prompt_evolution import EVOLVING, FIRST, Slow, judge_calmly
from tests.property.test_search_restart import answer

Rows = tuple[CampaignSpec, tuple[Candidate, ...], tuple[Mutation, ...]]

WHERE = CandidateId("elsewhere-7")


def said(request: DraftRequest) -> DraftEvent:
    if request.operator is Operator.MIGRATE:
        return arrived(request, f"text of {request.parent}", (1, 1, 1))
    return answer(request)


@cache
def rows() -> Rows:
    """A campaign with every mechanism, beside another target's."""
    specs = [
        sim_spec(name, seed=seed, group="g", search=EVOLVING, regions=FIRST, budget_candidates=70, in_flight=4)
        for name, seed in (("one", 11), ("two", 12))
    ]
    simulation = Simulation(said, judge_calmly, mutate=Slow())
    for spec in specs:
        simulation.submit(spec, drafted("initial"))
    simulation.run()
    mine = [one for one in simulation.rows.candidates.values() if campaign_of(one.id) == specs[0].id]
    mine.sort(key=lambda one: one.ordinal)
    return specs[0], tuple(mine), tuple(simulation.rows.mutations_of(specs[0].id))


def test_the_campaign_has_every_kind_of_row_and_is_proved() -> None:
    spec, candidates, mutations = rows()
    kinds = {one.operator for one in candidates}
    assert kinds == set(Operator)
    assert {one.state for one in mutations} == set(MutationState) - {MutationState.ASKING}
    result = replay(spec, candidates, mutations)
    assert result.difference is None
    assert result.decisions == sum(one.operator not in (Operator.INITIAL, Operator.MIGRATE) for one in candidates)


def asked(**changes: Callable[[Any], Any]) -> Callable[[Candidate], Candidate]:
    def change(one: Candidate) -> Candidate:
        made = {name: to(getattr(one.asked, name)) for name, to in changes.items()}
        return replace(one, asked=replace(one.asked, **made))

    return change


def told(**changes: Callable[[Any], Any]) -> Callable[[Candidate], Candidate]:
    def change(one: Candidate) -> Candidate:
        if one.told is None:
            return one
        made = {name: to(getattr(one.told, name)) for name, to in changes.items()}
        return replace(one, told=replace(one.told, **made))

    return change


def ended(**changes: int) -> Callable[[Mutation], Mutation]:
    def change(one: Mutation) -> Mutation:
        return one if one.ended is None else replace(one, ended=replace(one.ended, **changes))

    return change


def unless_migrant(one: Candidate, **changes: Any) -> Candidate:
    """A migrant's source, cell and generation are an elite's of another campaign."""
    return one if one.operator is Operator.MIGRATE else replace(one, **changes)


def more(value: Any) -> Any:
    return value + 1


CANDIDATE: dict[str, Callable[[Candidate], Candidate]] = {
    "operator": lambda one: replace(
        one, operator=Operator.CROSSOVER if one.operator is Operator.REWRITE else Operator.REWRITE
    ),
    "to a point": lambda one: one if one.operator is Operator.TUNE else replace(one, operator=Operator.TUNE),
    "to a migrant": lambda one: one if one.operator is Operator.MIGRATE else replace(one, operator=Operator.MIGRATE),
    "parent": lambda one: replace(one, parent=WHERE),
    "parent_source": lambda one: unless_migrant(one, parent_source="0" * 64),
    "origin": lambda one: replace(one, origin=None if one.origin else WHERE),
    "inspirations": lambda one: replace(one, inspirations=(*one.inspirations, WHERE)),
    "nth": lambda one: replace(one, nth=one.nth + 1),
    "generation": lambda one: unless_migrant(one, generation=one.generation + 1),
    "repair_depth": lambda one: replace(one, repair_depth=one.repair_depth + 1),
    "values": lambda one: replace(one, values=(*one.values, ("OTHER", 3))),
    "values of a point": lambda one: replace(one, values=tuple((name, 77) for name, _ in one.values)),
    "asked.model": asked(model=lambda _: "another"),
    "asked.variant": asked(variant=lambda _: "0123456789ab"),
    "asked.strategy": asked(strategy=lambda was: was + "x"),
    "asked.reaction": asked(reaction=lambda was: was + "x"),
    "asked.island": asked(island=more),
    "asked.hints": asked(hints=lambda was: (*was, (2, 1))),
    "asked.parent_cell": lambda one: unless_migrant(
        one, asked=asked(parent_cell=lambda was: ((was[0] + 1) % 4, *was[1:]))(one).asked
    ),
    "asked.parent_fitness": asked(parent_fitness=more),
    "asked.at": asked(at=lambda was: was + 100),
    "told.nth": told(nth=more),
    "told.fitness": told(fitness=lambda was: 0.3 if was else 0.9),
    "told.best": told(kept=lambda _: False, best=lambda _: True),
    "not told": lambda one: replace(one, told=None),
}

MUTATION: dict[str, Callable[[Mutation], Mutation]] = {
    "nth": lambda one: replace(one, nth=one.nth + 1),
    "parent": lambda one: replace(one, parent="0123456789ab"),
    "asked_at": lambda one: replace(one, asked_at=one.asked_at + 1),
    "variant": lambda one: replace(one, variant="0123456789ab"),
    "generation": lambda one: replace(one, generation=one.generation + 1),
    "regions": lambda one: replace(one, regions=((Region.ANALYSIS, "another text"),)),
    "accepted": lambda one: replace(one, state=MutationState.ACCEPTED),
    "open": lambda one: replace(one, state=MutationState.ASKING),
    "endless": lambda one: replace(one, ended=None),
    "ended.nth": ended(nth=99),
    "ended before it was asked": ended(at=-1),
}


def falsified(all_: Sequence[Any], change: Callable[[Any], Any]) -> list[list[Any]]:
    """The rows with one of them changed, for every row that the change changes."""
    changed = [(at, change(one)) for at, one in enumerate(all_) if _is_asked(one)]
    return [[*all_[:at], made, *all_[at + 1 :]] for at, made in changed if made != all_[at]]


def _is_asked(one: Any) -> bool:
    return not isinstance(one, Candidate) or one.operator is not Operator.INITIAL


@pytest.mark.parametrize("column", CANDIDATE)
def test_a_candidate_that_was_decided_otherwise_is_noticed(column: str) -> None:
    spec, candidates, mutations = rows()
    made = falsified(candidates, CANDIDATE[column])
    assert made
    for changed in made:
        assert replay(spec, changed, mutations).difference is not None


@pytest.mark.parametrize("column", MUTATION)
def test_a_mutation_that_was_decided_otherwise_is_noticed(column: str) -> None:
    spec, candidates, mutations = rows()
    made = falsified(mutations, MUTATION[column])
    assert made
    for changed in made:
        assert replay(spec, candidates, changed).difference is not None


def test_a_row_that_is_gone_or_there_twice_is_noticed() -> None:
    """But for the last one: a campaign that was killed before it was asked for looks the same."""
    spec, candidates, mutations = rows()
    for at in range(1, len(candidates) - 1):
        assert replay(spec, [*candidates[:at], *candidates[at + 1 :]], mutations).difference is not None
        assert replay(spec, [*candidates, candidates[at]], mutations).difference is not None
    for at in range(len(mutations)):
        assert replay(spec, candidates, [*mutations[:at], *mutations[at + 1 :]]).difference is not None
        assert replay(spec, candidates, [*mutations, mutations[at]]).difference is not None
