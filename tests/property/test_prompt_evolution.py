"""Prompts of a campaign evolve, whatever the meta-prompter does and whenever the daemon is killed; rows prove it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.base.instant import SECOND
from kfd.base.work import Incident, Report, VerdictCode
from kfd.core.campaign.evolution import MAX_FAULTS
from kfd.core.campaign.machine import Campaign
from kfd.core.campaign.mutation import Mutation, MutationRequest, MutationState, mutation_id
from kfd.core.campaign.replay import replay
from kfd.core.campaign.state import CampaignSpec, CampaignState
from kfd.core.commands import StartMutation
from kfd.core.events import Event, MutationArrived, MutationEvent, MutationFaulted, MutationMissed, MutationRejected
from kfd.core.fleet.model import Job
from kfd.core.search.prompt_archive import PromptPolicy, Region, variant_id
from kfd.testing.simulation import Simulation, drafted, report_for
from tests.property.test_budget_laws import LARGE, SMALL
from tests.property.test_search_restart import EVERYTHING, answer, judge, number, spec_of

FIRST = tuple((region, f"first {region.value}") for region in Region)
PROMPTS = PromptPolicy(period=3, size=4, min_children=1, pinned=(Region.PHILOSOPHY,))
EVOLVING = replace(EVERYTHING, prompts=PROMPTS)


def evolving(seed: int) -> CampaignSpec:
    return replace(spec_of(seed, EVOLVING), regions=FIRST, budget_candidates=80)


def changed(request: MutationRequest, region: Region, text: str) -> MutationArrived:
    regions = {**dict(request.regions), region: text}
    return MutationArrived(
        mutation=request.mutation,
        regions=tuple((one, regions[one]) for one in Region),
        model="meta",
        input_tokens=5,
        output_tokens=2,
        texts=(),
    )


def prompt_answer(request: MutationRequest) -> MutationEvent:
    """Most answers change a text; some change nothing, what is pinned, or hold nothing; some never come."""
    dice = number(request.campaign.seed, request.nth, "meta")
    match dice % 10:
        case 0:
            return MutationMissed(mutation=request.mutation, text="nobody")
        case 1:
            return MutationRejected(
                mutation=request.mutation, reason="prose", model="meta", input_tokens=5, output_tokens=2, texts=()
            )
        case 2:
            return changed(request, Region.PHILOSOPHY, "the user's text is gone")
        case 3:
            return changed(request, Region.ANALYSIS, dict(request.regions)[Region.ANALYSIS])
        case 4:
            return changed(request, Region.PITFALLS, "the same for everybody")
    return changed(request, [Region.STRATEGIES, Region.PITFALLS, Region.ANALYSIS][dice // 10 % 3], f"{dice % 9973}")


def judge_calmly(job: Job) -> Report:
    """Without incidents, after which a slot of the simulated worker may be taken out of service for good."""
    report = judge(job)
    return report_for(job, VerdictCode.OK, 1.5) if isinstance(report.outcome, Incident) else report


class Slow:
    """A meta-prompter that fails and takes its time: how long follows from the question."""

    def __init__(self) -> None:
        self.waited: dict[str, int] = {}

    def __call__(self, request: MutationRequest) -> MutationEvent | None:
        count = self.waited[request.mutation] = self.waited.get(request.mutation, 0) + 1
        dice = number(request.mutation, count)
        if count <= number(request.mutation) % 3:
            return None
        if dice % 5 == 0:
            return MutationFaulted(
                mutation=request.mutation,
                kind="overload",
                text="529",
                retry_after=None if dice % 7 == 0 else SECOND,
                input_tokens=1,
                output_tokens=0,
            )
        return prompt_answer(request)


class Watched(Simulation):
    """After every event a campaign restored from the rows is compared with the one that lives."""

    compared = 0

    def post(self, event: Event) -> None:
        """Give the engine one event, then compare."""
        super().post(event)
        for loaded in self.rows.loaded():
            live = self.engine.campaigns[loaded.spec.id]
            restored = Campaign(loaded, self.now)
            assert restored._search.prompts == live._search.prompts
            assert restored.proposal() == live.proposal()
            self.compared += 1


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(1, 2**40))
def test_a_restored_campaign_has_the_same_prompts_in_the_same_order(seed: int) -> None:
    simulation = Watched(answer, judge, mutate=Slow())
    simulation.submit(evolving(seed), drafted("initial"))
    simulation.run()
    assert simulation.compared > 10


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(1, 2**40),
    kill_at=st.sets(st.integers(0, 80), max_size=8),
    tokens=st.one_of(st.none(), st.integers(10_000, 120_000)),
)
def test_kills_at_any_moment_neither_lose_nor_double_a_mutation(
    seed: int, kill_at: set[int], tokens: int | None
) -> None:
    """Also when the budget of tokens holds a few calls at a time only, or fewer."""
    spec = replace(evolving(seed), terms=(LARGE, SMALL), budget_tokens=tokens)
    simulation = Simulation(answer, judge_calmly, mutate=Slow())
    simulation.submit(spec, drafted("initial"))
    for step in range(81):
        if step in kill_at:
            simulation.kill_daemon()
        simulation.step()
    simulation.run()
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED
    mutations = simulation.rows.mutations_of(spec.id)
    assert [one.nth for one in mutations] == list(range(1, len(mutations) + 1))
    places = [one.ended.nth for one in mutations if one.ended is not None]
    assert sorted(places) == list(range(1, len(mutations) + 1))
    assert all(one.faults <= MAX_FAULTS for one in mutations)
    result = replay(spec, list(simulation.rows.candidates.values()), mutations)
    assert result.difference is None
    assert result.mutations == len(mutations)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(1, 2**40), kill_at=st.sets(st.integers(0, 60), max_size=6))
def test_kills_change_no_prompt_and_nothing_that_was_asked_with_it(seed: int, kill_at: set[int]) -> None:
    """One candidate in flight and answers at once: then whole campaigns must be equal."""
    spec = replace(evolving(seed), in_flight=1, budget_candidates=30)
    calm, stormy = (Simulation(answer, judge_calmly, mutate=prompt_answer) for _ in range(2))
    for simulation in (calm, stormy):
        simulation.submit(spec, drafted("initial"))
    calm.run()
    for step in range(61):
        if step in kill_at:
            stormy.kill_daemon()
        stormy.step()
    stormy.run()
    assert set(stormy.rows.mutations) == set(calm.rows.mutations)
    used = {one.asked.variant for one in calm.rows.candidates.values() if one.ordinal}
    for key, mutation in stormy.rows.mutations.items():
        # What was open when the last candidate had been asked for is not asked again: nobody could use it.
        late = mutation.reason == "budget: 30 candidates" and calm.rows.mutations[key].variant not in used
        assert late or mutation == calm.rows.mutations[key]
    assert {one.id: one.asked for one in stormy.rows.candidates.values()} == {
        one.id: one.asked for one in calm.rows.candidates.values()
    }


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(1, 2**40), steps=st.integers(5, 60))
def test_a_replay_proves_the_mutations_of_a_campaign_that_still_runs(seed: int, steps: int) -> None:
    spec = evolving(seed)
    simulation = Simulation(answer, judge, mutate=Slow())
    simulation.submit(spec, drafted("initial"))
    for _ in range(steps):
        simulation.step()
    mutations = simulation.rows.mutations_of(spec.id)
    result = replay(spec, list(simulation.rows.candidates.values()), mutations)
    assert result.difference is None
    assert result.mutations == len(mutations)


def whole() -> tuple[CampaignSpec, Simulation]:
    spec = evolving(11)
    simulation = Simulation(answer, judge, mutate=prompt_answer)
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    return spec, simulation


def first_accepted(mutations: list[Mutation]) -> int:
    return next(at for at, one in enumerate(mutations) if one.state is MutationState.ACCEPTED)


def text_changed(one: Mutation) -> Mutation:
    return replace(one, regions=tuple((region, f"{text} more") for region, text in one.regions))


def as_another(one: Mutation) -> Mutation:
    """A text that fits its id, but overwrites what the user has pinned."""
    texts = {**dict(one.regions), Region.PHILOSOPHY: "mine"}
    return replace(one, regions=tuple(texts.items()), variant=variant_id(texts))


def later(one: Mutation) -> Mutation:
    assert one.ended is not None
    return replace(one, ended=replace(one.ended, at=one.ended.at + 1000))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (text_changed, "new variant"),
        (as_another, "pinned philosophy"),
        (lambda one: replace(one, parent="0123456789ab"), "prompts to change"),
        (lambda one: replace(one, asked_at=one.asked_at + 1), "prompts to change"),
    ],
)
def test_a_replay_names_the_mutation_that_differs(change: Callable[[Mutation], Mutation], what: str) -> None:
    spec, simulation = whole()
    mutations = simulation.rows.mutations_of(spec.id)
    at = first_accepted(mutations)
    mutations[at] = change(mutations[at])
    difference = replay(spec, list(simulation.rows.candidates.values()), mutations).difference
    assert difference is not None
    assert (difference.candidate, difference.what) == (mutation_id(spec.id, mutations[at].nth), what)


@pytest.mark.parametrize(
    "change",
    [
        lambda mutations: mutations[1:],
        lambda mutations: mutations[:-1],
        lambda mutations: [*mutations, replace(mutations[-1], nth=mutations[-1].nth + 1, asked_at=9999)],
        lambda mutations: [later(one) if one.state is MutationState.ACCEPTED else one for one in mutations],
    ],
)
def test_a_replay_notices_what_is_missing_or_too_many(change: Callable[[list[Mutation]], list[Mutation]]) -> None:
    spec, simulation = whole()
    candidates = list(simulation.rows.candidates.values())
    mutations = simulation.rows.mutations_of(spec.id)
    assert replay(spec, candidates, mutations).difference is None
    assert replay(spec, candidates, change(mutations)).difference is not None


def test_the_worlds_above_reach_every_end_of_a_mutation() -> None:
    states, reasons, models, used = set(), set(), set(), 0
    for seed in range(1, 11):
        simulation = Simulation(answer, judge, mutate=Slow())
        spec = evolving(seed)
        simulation.submit(spec, drafted("initial"))
        simulation.run()
        for one in simulation.rows.mutations_of(spec.id):
            states.add(one.state)
            reasons.add(one.reason)
        models |= {command.request.model for command in simulation.commands if isinstance(command, StartMutation)}
        made = {one.variant for one in simulation.rows.mutations_of(spec.id)} - {""}
        used += sum(one.asked.variant in made for one in simulation.rows.candidates.values())
    assert states == {MutationState.ACCEPTED, MutationState.REJECTED, MutationState.DROPPED}
    assert {"prose", "philosophy is pinned by the user", "the edits change nothing"} <= reasons
    assert models == {"large", "small"}
    assert used > 20
