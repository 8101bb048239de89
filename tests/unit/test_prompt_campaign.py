"""Laws of prompt evolution in campaigns: who is asked, what is believed, and that nothing waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from kfd.base.instant import MINUTE
from kfd.base.work import VerdictCode
from kfd.core.campaign import evolution
from kfd.core.campaign.evolution import MAX_FAULTS
from kfd.core.campaign.machine import Campaign
from kfd.core.campaign.mutation import MutationRequest, MutationState, first_variant, mutation_id, nth_of
from kfd.core.campaign.replay import replay
from kfd.core.campaign.state import CampaignSpec, CampaignState
from kfd.core.commands import SaveMutationText, SaveSpending, StartDraft, StartMutation, StopMutation
from kfd.core.events import (
    CampaignCancelled,
    CampaignPaused,
    CampaignResumed,
    MutationArrived,
    MutationEvent,
    MutationFaulted,
    MutationRejected,
    SpaceChanged,
)
from kfd.core.search.operators import OperatorPolicy
from kfd.core.search.prompt_archive import MAX_REGION, PromptPolicy, Region
from kfd.core.search.proposals import SearchPolicy
from kfd.core.search.terms import cost_of
from kfd.core.search.tuning import Declared
from kfd.store.rows import pack
from kfd.testing.simulation import Simulation, arrived, drafted, report_for, sim_spec
from tests.property.test_budget_laws import SMALL
from tests.property.test_search_restart import number
from tests.unit.test_core_campaign import INITIAL, answer, facts, judge

FIRST = tuple((region, f"first {region.value}") for region in Region)


def spec_of(budget: int = 40, **prompts: object) -> CampaignSpec:
    policy = PromptPolicy(**{"period": 5, "min_children": 1, **prompts})  # type: ignore[arg-type]
    search = SearchPolicy(prompts=policy, operators=OperatorPolicy(template_every=0, repair_depth=0))
    return sim_spec(search=search, regions=FIRST, budget_candidates=budget)


def improved(request: MutationRequest, region: Region = Region.STRATEGIES, text: str = "") -> MutationArrived:
    texts = {**dict(request.regions), region: text or f"made by {request.nth}"}
    return MutationArrived(
        mutation=request.mutation,
        regions=tuple(texts.items()),
        model="meta",
        input_tokens=11,
        output_tokens=3,
        texts=(pack("prompt", "q"), pack("answer", "a")),
    )


def fault(request: MutationRequest, retry_after: int | None = MINUTE) -> MutationFaulted:
    return MutationFaulted(
        mutation=request.mutation,
        kind="overload",
        text="529",
        retry_after=retry_after,
        input_tokens=7,
        output_tokens=1,
    )


def run(spec: CampaignSpec, mutate: Callable[[MutationRequest], MutationEvent | None]) -> Simulation:
    simulation = Simulation(answer, judge, mutate=mutate)
    simulation.submit(spec, INITIAL)
    simulation.run()
    return simulation


def requests(simulation: Simulation) -> list[MutationRequest]:
    return [command.request for command in simulation.commands if isinstance(command, StartMutation)]


def states(simulation: Simulation, spec: CampaignSpec) -> list[MutationState]:
    return [one.state for one in simulation.rows.mutations_of(spec.id)]


def test_a_prompt_changes_at_its_period_and_later_children_carry_its_text() -> None:
    spec = spec_of()
    simulation = run(spec, improved)
    first = requests(simulation)[0]
    assert (first.parent, first.regions, first.children) == (first_variant(spec).id, FIRST, 5)
    mutations = simulation.rows.mutations_of(spec.id)
    assert mutations[0].asked_at == 5
    assert {one.state for one in mutations} == {MutationState.ACCEPTED}
    assert (mutations[0].input_tokens, mutations[0].output_tokens, mutations[0].model) == (11, 3, "meta")
    texts = {one.variant: dict(one.regions) for one in mutations}
    drafts = [command.request for command in simulation.commands if isinstance(command, StartDraft)]
    carried = 0
    for draft in drafts:
        variant = simulation.rows.candidates[draft.candidate].asked.variant
        assert dict(draft.regions) == texts.get(variant, dict(FIRST))
        carried += variant in texts
    assert carried > 5
    (told, *_) = facts(simulation, "prompt.evolved")
    assert told["variant"] == mutations[0].variant
    assert (told["parent"], told["generation"], told["regions"]) == (first.parent, 1, "strategies")
    assert float(str(told["parent_credit"])) > 0
    saved = [one for one in simulation.commands if isinstance(one, SaveMutationText) and one.nth == 1]
    assert [one.text.kind for one in saved] == ["prompt", "answer"]


def test_without_a_period_nobody_is_asked() -> None:
    spec = spec_of(period=0)
    simulation = run(spec, improved)
    assert requests(simulation) == []
    assert states(simulation, spec) == []


def test_a_lineage_grows_and_its_generations_count_up() -> None:
    spec = spec_of(200)
    simulation = run(spec, improved)
    by_id = {one.variant: one for one in simulation.rows.mutations_of(spec.id)}
    assert max(one.generation for one in by_id.values()) >= 2
    for one in by_id.values():
        parent = by_id.get(one.parent)
        assert one.generation == (parent.generation if parent is not None else 0) + 1


@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_update_changes_so_many_variants_at_most(most: int) -> None:
    spec = spec_of(200, mutations=most)
    simulation = run(spec, improved)
    at = [one.asked_at for one in simulation.rows.mutations_of(spec.id)]
    assert max(at.count(one) for one in at) == most


def test_points_of_a_sweep_complete_no_period() -> None:
    """A period that a template completed must not come due again with each point that is measured after it."""
    spec = spec_of(30, period=1)
    spec = replace(spec, search=replace(spec.search, operators=OperatorPolicy(template_every=3)), in_flight=1)
    space = Declared(tunables=(("TILE", (16, 8, 32, 64)),), conditions=())

    def template(request: object) -> object:
        made = answer(request)  # type: ignore[arg-type]
        return replace(made, drafted=replace(made.drafted, space=space))  # type: ignore[attr-defined]

    simulation = Simulation(template, lambda job: report_for(job, VerdictCode.OK, 1.5), mutate=improved)  # type: ignore[arg-type]
    simulation.submit(spec, INITIAL)
    simulation.run()
    mutations = simulation.rows.mutations_of(spec.id)
    candidates = [one for one in simulation.rows.candidates.values() if one.told is not None]
    points = {one.told.nth for one in candidates if one.operator == "tune" and one.told is not None}
    assert points
    assert mutations
    assert not points & {one.asked_at for one in mutations}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda request: improved(request, Region.PITFALLS), "pitfalls is pinned by the user"),
        (lambda request: improved(request, text="x" * (MAX_REGION + 1)), f"longer than {MAX_REGION}"),
        (lambda request: improved(request, text="first strategies"), "the edits change nothing"),
    ],
)
def test_what_the_core_does_not_believe(change: Callable[[MutationRequest], MutationArrived], why: str) -> None:
    spec = spec_of(pinned=(Region.PITFALLS,))
    simulation = run(spec, change)
    assert set(states(simulation, spec)) == {MutationState.REJECTED}
    told = facts(simulation, "prompt.rejected")
    assert len(told) == len(states(simulation, spec))
    assert all(why in str(one["reason"]) for one in told)
    assert {one.asked.variant for one in simulation.rows.candidates.values()} == {"", first_variant(spec).id}


def test_the_same_text_twice_is_one_variant() -> None:
    spec = spec_of(120)
    simulation = run(spec, lambda request: improved(request, text="always the same"))
    reasons = {str(one["reason"]) for one in facts(simulation, "prompt.rejected")}
    assert reasons == {"it says what another variant says", "the edits change nothing"}
    assert states(simulation, spec).count(MutationState.ACCEPTED) == 1


def test_an_archive_of_one_keeps_the_first_and_says_why() -> None:
    spec = spec_of(size=1)
    simulation = run(spec, improved)
    assert {str(one["reason"]) for one in facts(simulation, "prompt.rejected")} == {
        "the archive has room for one variant"
    }


def test_an_answer_that_is_none_is_rejected_with_its_reason_and_paid_for() -> None:
    def prose(request: MutationRequest) -> MutationRejected:
        return MutationRejected(
            mutation=request.mutation, reason="no edit", model="meta", input_tokens=9, output_tokens=4, texts=()
        )

    spec = spec_of()
    simulation = run(spec, prose)
    row = simulation.rows.mutations_of(spec.id)[0]
    assert (row.state, row.reason, row.input_tokens, row.output_tokens) == (MutationState.REJECTED, "no edit", 9, 4)


def test_a_meta_prompter_that_never_answers_delays_nobody_and_is_dropped_at_the_end() -> None:
    spec = spec_of()
    simulation = run(spec, lambda request: None)
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED
    assert sum(simulation.outcomes(spec.id).values()) == 41
    assert states(simulation, spec) == [MutationState.DROPPED]  # an update waits for the answers of the last
    assert [one for one in simulation.commands if isinstance(one, StopMutation)] == [
        StopMutation(mutation=mutation_id(spec.id, 1))
    ]


def test_without_anybody_to_answer_the_campaign_goes_on_and_each_question_is_put_once() -> None:
    spec = spec_of()
    simulation = Simulation(answer, judge)
    simulation.submit(spec, INITIAL)
    simulation.run()
    asked = [request.mutation for request in requests(simulation)]
    assert len(asked) == len(set(asked)) == 7  # 5, 10, ... 35; the fortieth child is the last
    assert set(states(simulation, spec)) == {MutationState.DROPPED}
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED


def test_a_provider_that_fails_is_asked_again_later_and_not_for_ever() -> None:
    spec = spec_of()
    simulation = run(spec, lambda request: fault(request, 0))
    row = simulation.rows.mutations_of(spec.id)[0]
    asked = [request for request in requests(simulation) if request.nth == 1]
    assert 1 < len(asked) <= MAX_FAULTS
    assert [request.input_tokens for request in asked] == [7 * n for n in range(len(asked))]
    assert (row.state, row.faults) == (MutationState.DROPPED, len(asked))
    assert row.input_tokens == 7 * len(asked)
    assert len(facts(simulation, "prompt.failed")) == sum(one.faults for one in simulation.rows.mutations_of(spec.id))


def test_a_fault_that_only_a_person_can_mend_ends_the_mutation_and_pauses_nothing() -> None:
    spec = spec_of()
    simulation = run(spec, lambda request: fault(request, None))
    assert {(one.state, one.faults) for one in simulation.rows.mutations_of(spec.id)} == {(MutationState.DROPPED, 1)}
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED
    assert not facts(simulation, "campaign.paused")


def until_asked(spec: CampaignSpec, mutate: Callable[[MutationRequest], MutationEvent | None]) -> Simulation:
    simulation = Simulation(answer, judge, mutate=mutate)
    simulation.submit(spec, INITIAL)
    for _ in range(100):
        if not simulation.mutations:
            simulation.step()
    assert simulation.mutations
    return simulation


def test_a_paused_campaign_starts_no_mutation_and_takes_answers() -> None:
    spec = spec_of(80)
    simulation = until_asked(spec, lambda request: None)
    (request,) = simulation.mutations.values()
    simulation.ask(lambda call: CampaignPaused(call=call, campaign=spec.id, reason="lunch"))
    simulation.post(fault(request))
    simulation.mutations.clear()
    simulation.now += 10 * MINUTE
    for _ in range(20):
        simulation.step()
    assert not simulation.mutations
    simulation.ask(lambda call: CampaignResumed(call=call, campaign=spec.id))
    assert [one.nth for one in simulation.mutations.values()] == [1]
    simulation.ask(lambda call: CampaignPaused(call=call, campaign=spec.id, reason="lunch"))
    simulation.post(improved(request))
    assert states(simulation, spec)[0] is MutationState.ACCEPTED


def test_a_full_disk_holds_mutations_back() -> None:
    spec = spec_of(80)
    simulation = until_asked(spec, lambda request: None)
    (request,) = simulation.mutations.values()
    simulation.post(SpaceChanged(low=True, text="full"))
    simulation.post(fault(request))
    simulation.mutations.clear()
    simulation.now += 10 * MINUTE
    wake = simulation.engine.campaigns[spec.id].next_wake(simulation.now)
    assert wake > simulation.now  # one that is overdue must not wake the daemon again and again
    for _ in range(20):
        simulation.step()
    assert not simulation.mutations
    simulation.post(SpaceChanged(low=False, text="room"))
    assert [one.nth for one in simulation.mutations.values()] == [1]


def test_a_cancelled_campaign_drops_what_is_open_and_late_answers_change_nothing() -> None:
    spec = spec_of()
    simulation = until_asked(spec, lambda request: None)
    (request,) = simulation.mutations.values()
    simulation.ask(lambda call: CampaignCancelled(call=call, campaign=spec.id, reason="enough"))
    assert states(simulation, spec) == [MutationState.DROPPED]
    before = len(simulation.commands)
    simulation.post(improved(request))
    assert len(simulation.commands) == before


def test_an_answer_that_comes_twice_counts_once() -> None:
    spec = spec_of(80)
    simulation = until_asked(spec, lambda request: None)
    (request,) = simulation.mutations.values()
    for _ in range(2):
        simulation.post(improved(request))
    assert len(facts(simulation, "prompt.evolved")) == 1
    assert simulation.rows.mutations_of(spec.id)[0].input_tokens == 11


def test_a_restarted_daemon_asks_open_mutations_once_more() -> None:
    spec = spec_of(80)
    simulation = until_asked(spec, lambda request: None)
    (request,) = simulation.mutations.values()
    simulation.kill_daemon()
    (again,) = simulation.mutations.values()
    # Its record may have grown since, and is told as it is now.
    assert replace(again, children=request.children, credit=request.credit, mean=request.mean) == request
    assert again.children >= request.children


def test_a_restarted_daemon_still_knows_a_variant_that_its_archive_has_dropped() -> None:
    spec = spec_of(80, size=2, period=2)
    spec = replace(spec, in_flight=1)
    simulation = run(spec, improved)
    dropped = simulation.rows.mutations_of(spec.id)[0]
    # What a daemon would have read shortly before the campaign ended.
    simulation.rows.records[spec.id] = replace(simulation.rows.records[spec.id], state=CampaignState.RUNNING)
    restored = Campaign(simulation.rows.loaded()[0], simulation.now)
    assert dropped.variant not in {one.id for one in restored._search.prompts}
    assert restored._evolution.regions(dropped.variant) == dropped.regions
    assert restored._evolution.regions("never heard of") == FIRST


def test_the_configured_model_is_asked_or_one_of_the_campaigns_own() -> None:
    models = (("large", 1.0), ("small", 1.0))
    for wanted, expected in (("", {"large", "small"}), ("huge", {"huge"})):
        spec = spec_of(120, model=wanted)
        spec = replace(spec, search=replace(spec.search, models=models))
        assert {request.model for request in requests(run(spec, improved))} == expected
    assert {request.model for request in requests(run(spec_of(), improved))} == {""}


def test_a_campaign_asks_for_so_many_mutations_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evolution, "MAX_MUTATIONS", 3)
    spec = spec_of(200, mutations=1)
    assert len(states(run(spec, improved), spec)) == 3


def test_ids_of_mutations_name_their_campaign_and_place() -> None:
    spec = spec_of()
    assert nth_of(mutation_id(spec.id, 12)) == 12
    assert mutation_id(spec.id, 12) == f"{spec.id}-p12"


# ---- budgets ---------------------------------------------------------------------------------------------------------

META = replace(SMALL, name="meta", max_input_tokens=400_000, max_output_tokens=8_000, raised_output_tokens=8_000)


def bounded(tokens: int, **changes: object) -> CampaignSpec:
    """A campaign that asks ``small`` for kernels, at most 10 000 tokens each, and ``meta`` for prompts: 408 000."""
    spec = replace(spec_of(model="meta"), terms=(SMALL, META), budget_tokens=tokens, **changes)  # type: ignore[arg-type]
    return replace(spec, search=replace(spec.search, models=(("small", 1.0),)))


def booked(simulation: Simulation) -> dict[str, int]:
    spent: dict[str, int] = {}
    for one in simulation.commands:
        if isinstance(one, SaveSpending):
            spent[one.key] = spent.get(one.key, 0) + one.cost.tokens
    return spent


def reserved(simulation: Simulation, spec: CampaignSpec) -> dict[str, int]:
    return {key: most.tokens for key, most in simulation.engine.campaigns[spec.id].account.reservations}


def test_a_mutation_is_reserved_before_it_is_asked_and_booked_at_what_it_used() -> None:
    spec = bounded(10_000_000)
    simulation = until_asked(spec, lambda request: None)
    (request,) = simulation.mutations.values()
    assert reserved(simulation, spec)[request.mutation] == 408_000
    simulation.post(improved(request))
    assert request.mutation not in reserved(simulation, spec)
    assert booked(simulation)[request.mutation] == 14
    simulation.run()
    tokens = sum(one.input_tokens + one.output_tokens for one in simulation.rows.mutations_of(spec.id))
    assert sum(spent for key, spent in booked(simulation).items() if "-p" in key) == tokens


def test_calls_that_failed_are_booked_and_reserved_again() -> None:
    spec = bounded(10_000_000)
    simulation = until_asked(spec, lambda request: None)
    (request,) = simulation.mutations.values()
    simulation.post(fault(request, MINUTE))
    assert booked(simulation)[request.mutation] == 8
    assert request.mutation not in reserved(simulation, spec)
    simulation.kill_daemon()
    assert reserved(simulation, spec)[request.mutation] == 408_000


def test_a_mutation_that_no_budget_allows_is_never_asked_and_the_campaign_goes_on() -> None:
    spec = bounded(400_000, in_flight=1)
    simulation = run(spec, improved)
    assert requests(simulation) == []
    assert states(simulation, spec) == [MutationState.DROPPED]
    assert simulation.rows.records[spec.id].reason == "budget: 40 candidates"


def test_a_failed_call_is_booked_at_the_price_of_the_model_that_was_asked() -> None:
    dear = replace(SMALL, name="dear", input_price=10**9, output_price=10**9)
    spec = replace(bounded(10_000_000), terms=(SMALL, META, dear))
    simulation = until_asked(spec, lambda request: None)
    (request,) = simulation.mutations.values()
    simulation.post(fault(request, MINUTE))
    (cost,) = (one.cost for one in simulation.commands if isinstance(one, SaveSpending) and "-p" in one.key)
    assert cost == cost_of(META, 7, 1)


def test_an_open_mutation_never_keeps_a_candidate_from_being_asked_for() -> None:
    """Its reservation leaves room for nothing else: it is given up, and the budget is spent on candidates."""
    spec = bounded(415_000, in_flight=1)
    simulation = run(spec, lambda request: None)
    rows = simulation.rows.mutations_of(spec.id)
    assert rows[0].reason == "budget: tokens"
    assert any(isinstance(one, StopMutation) for one in simulation.commands)
    assert simulation.rows.records[spec.id].reason == "budget: 40 candidates"
    result = replay(spec, list(simulation.rows.candidates.values()), rows)
    assert (result.difference, result.mutations) == (None, len(rows))


OTHER = {
    "size": 2,
    "period": 9,
    "mutations": 1,
    "explore": 1.0,
    "prior": 500.0,
    "min_children": 9,
    "pinned": (Region.STRATEGIES,),
    "model": "someone",
}


def test_no_key_of_the_section_is_left_out() -> None:
    assert set(OTHER) == {one.name for one in fields(PromptPolicy)}


@pytest.mark.parametrize(("key", "value"), OTHER.items())
def test_every_key_of_the_section_changes_what_a_campaign_does(key: str, value: object) -> None:
    def played(**prompts: object) -> list[object]:
        spec = spec_of(150, **prompts)
        simulation = Simulation(varied, judge, mutate=improved)
        simulation.submit(spec, drafted("initial"))
        simulation.run()
        asked = [(one.id, one.asked.variant) for one in simulation.rows.candidates.values()]
        return [asked, [(one.nth, one.parent, one.model) for one in requests(simulation)], states(simulation, spec)]

    assert played() == played()
    assert played(**{key: value}) != played()


def varied(request: object) -> object:
    dice = number(request.ordinal)  # type: ignore[attr-defined]
    return arrived(request, f"kernel {request.ordinal}", (dice % 4, dice // 4 % 4, dice // 16 % 4))  # type: ignore[arg-type,attr-defined]
