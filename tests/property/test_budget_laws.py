"""Budgets of whole campaigns: never exceeded in whatever order things come, and the same after a restart."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.base.ids import CampaignId, CandidateId, campaign_of
from kfd.base.instant import SECOND
from kfd.base.work import AdmitSpec, BuildSpec, Incident, IncidentCode, Limits, Report, VerdictCode
from kfd.core.campaign.machine import Campaign
from kfd.core.campaign.mutation import MutationRequest
from kfd.core.campaign.replay import replay
from kfd.core.campaign.spending import MAX_VERIFICATIONS, Spending, call_bound_of, device_cost, limits_of
from kfd.core.campaign.state import CampaignRecord, CampaignSpec, CampaignState, Candidate, CandidateState, admit_job
from kfd.core.commands import DraftRequest, StartDraft
from kfd.core.events import (
    DraftEvent,
    DraftFaulted,
    DraftRejected,
    Event,
    MutationArrived,
    MutationEvent,
    MutationFaulted,
)
from kfd.core.fleet.model import Fact, Job
from kfd.core.search.budgets import ZERO, Amount
from kfd.core.search.operators import Operator, OperatorPolicy
from kfd.core.search.prompt_archive import PromptPolicy, Region
from kfd.core.search.proposals import SearchPolicy
from kfd.core.search.terms import ModelTerms, cost_of, draft_bound, terms_of
from kfd.core.search.tuning import Declared
from kfd.testing.simulation import Simulation, arrived, drafted, report_for, sim_spec

RUN = 60 * SECOND
LARGE = ModelTerms(
    name="large",
    max_input_tokens=9_000,
    max_output_tokens=1_000,
    raised_output_tokens=2_000,
    input_price=3_000_000,
    output_price=15_000_000,
)
SMALL = replace(LARGE, name="small", input_price=150_000, output_price=600_000)
POLICY = SearchPolicy(models=(("large", 1.0), ("small", 2.0)), operators=OperatorPolicy(template_every=6))
EVOLVING = replace(POLICY, prompts=PromptPolicy(period=3, min_children=1))
SPACE = Declared(tunables=(("TILE", (16, 8, 32)),), conditions=())
INITIAL = drafted("initial")


def number(*parts: object) -> int:
    return int(hashlib.sha256(repr(parts).encode()).hexdigest(), 16)


def spec_of(seed: int, **changes: object) -> CampaignSpec:
    fields: dict[str, object] = {
        "seed": seed,
        "search": POLICY,
        "terms": (LARGE, SMALL),
        "asks_again": 1,
        "budget_candidates": 40,
        "in_flight": 5,
        "run_limits": Limits(wall_ns=RUN),
    }
    return sim_spec(f"budget-{seed}", **{**fields, **changes})


class World(Simulation):
    """Models that use up to what they may, faults that cost, runs that take time; laws are held after each event."""

    def __init__(self) -> None:
        self.asked: Counter[CandidateId] = Counter()
        super().__init__(self._said, self._ran, mutate=self._evolved)

    def _said(self, request: DraftRequest) -> DraftEvent:
        if request.operator is Operator.TUNE:
            return arrived(request, f"{request.parent_source} {request.values}")
        self.asked[request.candidate] += 1
        dice = number(request.campaign.seed, request.ordinal, self.asked[request.candidate])
        bound = call_bound_of(request.campaign, request.model)
        used = {
            "model": request.model,
            "input_tokens": bound.input_tokens * (dice % 5) // 4,
            "output_tokens": bound.output_tokens * (dice // 5 % 5) // 4,
        }
        if dice % 4 == 0:
            return DraftFaulted(candidate=request.candidate, kind="stall", text="cut", retry_after=SECOND, **used)
        if dice % 4 == 1:
            rejected = {"reason": "no_code", "detail": "prose", "texts": ()}
            return DraftRejected(candidate=request.candidate, **rejected, **used)
        cell = (dice // 12 % 4, dice // 48 % 4, 0)
        made = replace(arrived(request, f"kernel {request.ordinal}", cell), **used)
        template = request.operator is Operator.TEMPLATE
        return replace(made, drafted=replace(made.drafted, space=SPACE)) if template else made

    def _evolved(self, request: MutationRequest) -> MutationEvent:
        """A meta-prompter that uses up to what it may, and fails now and then."""
        self.asked[CandidateId(request.mutation)] += 1
        dice = number(request.campaign.seed, request.nth, self.asked[CandidateId(request.mutation)])
        bound = draft_bound(terms_of(request.campaign.terms, request.model), 0)
        used = {
            "mutation": request.mutation,
            "input_tokens": bound.input_tokens * (dice % 5) // 4,
            "output_tokens": bound.output_tokens * (dice // 5 % 5) // 4,
        }
        if dice % 3 == 0:
            return MutationFaulted(kind="stall", text="cut", retry_after=SECOND, **used)
        regions = ((Region.PITFALLS, f"Variant {request.nth}."),)
        return MutationArrived(regions=regions, model=request.model, texts=(), **used)

    def _ran(self, job: Job) -> Report:
        dice = number(job.id)
        stages = (("fetch", 1 << 60), ("check", RUN * (dice % 7) // 12), ("benchmark", RUN * (dice // 7 % 7) // 6))
        if isinstance(job.spec.work, AdmitSpec):
            report = report_for(job, VerdictCode.OK)
        elif isinstance(job.spec.work, BuildSpec):
            report = report_for(
                job, VerdictCode.COMPILE_ERROR if dice % 9 == 0 and "-0." not in job.id else VerdictCode.OK
            )
        elif "verify" in job.id and dice % 3 == 0:
            report = report_for(job, VerdictCode.INCORRECT)
        elif dice % 31 == 0 and "-0." not in job.id:
            report = Report(outcome=Incident(code=IncidentCode.DEVICE, text="lost"))
        else:
            report = report_for(job, VerdictCode.OK, 0.5 + dice % 300 / 50)
        return replace(report, stages_ns=stages if dice % 11 else ())

    def post(self, event: Event) -> None:
        super().post(event)
        for loaded in self.rows.loaded():
            spent = self.spent(loaded.spec.id)
            live = self.engine.campaigns[loaded.spec.id]._spending.account
            again = Campaign(loaded, self.now)._spending.account
            assert live.spent == again.spent == spent
            # A mutation's call is reserved when it starts, which after a restart is with the first step.
            drafts = [one for one in live.reservations if "-p" not in one[0]]
            assert drafts == list(again.reservations)
            assert limits_of(loaded.spec).first_exceeded(live.committed) is None

    def spent(self, campaign: CampaignId) -> Amount:
        return self.rows.spent.get(campaign, ZERO)


def played(spec: CampaignSpec) -> World:
    world = World()
    world.submit(spec, INITIAL)
    world.run()
    assert world.rows.records[spec.id].state is CampaignState.FINISHED, world.rows.records[spec.id].reason
    return world


BUDGETS = {
    "money": st.integers(100_000, 1_500_000).map(lambda value: {"budget_micro_money": value}),
    "tokens": st.integers(20_000, 400_000).map(lambda value: {"budget_tokens": value}),
    "device": st.integers((3 + MAX_VERIFICATIONS) * RUN, 40 * RUN).map(lambda value: {"budget_device_ns": value}),
}
ANY_BUDGETS = st.tuples(*BUDGETS.values()).map(lambda parts: {**parts[0], **parts[1], **parts[2]})


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(1, 2**40), budget=st.one_of(*BUDGETS.values(), ANY_BUDGETS), in_flight=st.integers(1, 8))
def test_no_order_of_answers_faults_and_runs_exceeds_a_budget(
    seed: int, budget: dict[str, int], in_flight: int
) -> None:
    spec = spec_of(seed, in_flight=in_flight, **budget)
    world = played(spec)
    assert limits_of(spec).first_exceeded(world.spent(spec.id)) is None
    candidates = [one for one in world.rows.candidates.values() if campaign_of(one.id) == spec.id]
    tokens = sum(one.input_tokens + one.output_tokens for one in candidates if one.operator is not Operator.TUNE)
    points = sum(one.input_tokens + one.output_tokens for one in candidates if one.operator is Operator.TUNE)
    assert world.spent(spec.id).tokens == tokens + points
    assert replay(spec, candidates).difference is None


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(1, 2**40), budget=st.one_of(BUDGETS["money"], BUDGETS["tokens"]), kill=st.integers(0, 20))
def test_mutations_of_prompts_are_paid_from_the_same_budget(seed: int, budget: dict[str, int], kill: int) -> None:
    """World holds after each event that nothing is exceeded; here, that what mutations used is in the books."""
    spec = spec_of(seed, search=EVOLVING, **budget)
    world = World()
    world.submit(spec, INITIAL)
    for step in range(kill):
        world.step()
        if step % 4 == 3:
            world.kill_daemon()
    world.run()
    assert world.rows.records[spec.id].state is CampaignState.FINISHED
    mutations = world.rows.mutations_of(spec.id)
    candidates = [one for one in world.rows.candidates.values() if campaign_of(one.id) == spec.id]
    used = sum(one.input_tokens + one.output_tokens for one in [*mutations, *candidates])
    assert world.spent(spec.id).tokens == used


def test_what_mutations_may_cost_is_reserved_and_what_they_used_is_spent() -> None:
    spec = spec_of(7, search=EVOLVING, budget_tokens=2_000_000)
    world = played(spec)
    mutations = world.rows.mutations_of(spec.id)
    assert sum(one.input_tokens + one.output_tokens for one in mutations) > 0
    tight = spec_of(7, search=EVOLVING, budget_tokens=24_500)
    world = played(tight)
    assert world.spent(tight.id).tokens <= 24_500


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(1, 2**40), budget=ANY_BUDGETS, kill_at=st.sets(st.integers(0, 60), max_size=8))
def test_a_daemon_killed_at_any_moment_has_spent_what_an_undisturbed_one_has(
    seed: int, budget: dict[str, int], kill_at: set[int]
) -> None:
    """One candidate in flight: then nothing but budgets and search decides, and whole campaigns must be equal."""
    spec = spec_of(seed, in_flight=1, **budget)
    calm, stormy = played(spec), World()
    stormy.submit(spec, INITIAL)
    for step in range(61):
        if step in kill_at:
            stormy.kill_daemon()
        stormy.step()
    stormy.run()
    assert stormy.spent(spec.id) == calm.spent(spec.id)
    assert stormy.rows.records[spec.id].reason == calm.rows.records[spec.id].reason
    assert {one.id: one.outcome for one in stormy.rows.candidates.values()} == {
        one.id: one.outcome for one in calm.rows.candidates.values()
    }


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"budget_micro_money": 400_000}, "budget: money"),
        ({"budget_tokens": 100_000}, "budget: tokens"),
        ({"budget_device_ns": 16 * RUN}, "budget: device time"),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_a_campaign_ends_with_the_budget_that_is_used_up(budget: dict[str, int], reason: str, seed: int) -> None:
    spec = spec_of(seed, **budget)
    world = played(spec)
    assert world.rows.records[spec.id].reason.startswith(reason)
    (fact,) = [dict(one.body) for one in world.commands if isinstance(one, Fact) and one.kind == "budget.reached"]
    assert fact["limit"] in budget.values()
    assert fact["spent"] + fact["kept_for_the_end"] + fact["next_may_cost"] > fact["limit"]
    asked = [one for one in world.rows.candidates.values() if one.operator is not Operator.INITIAL]
    assert 0 < len(asked) < spec.budget_candidates
    # What ends it is true: nobody can be asked any more for what is left.
    left = {name: limit - getattr(world.spent(spec.id), name) for name, limit in _limits(spec).items()}
    ((name, least),) = left.items()
    bound = call_bound_of(spec, "large")
    most = cost_of(terms_of(spec.terms, "large"), bound.input_tokens, bound.output_tokens)
    assert least < getattr(most.plus(Amount(device_ns=(2 + MAX_VERIFICATIONS) * RUN)), name)


def _limits(spec: CampaignSpec) -> dict[str, int]:
    limits = limits_of(spec)
    found = {name: getattr(limits, name) for name in ("micro_money", "tokens", "device_ns")}
    return {name: value for name, value in found.items() if value is not None}


def test_the_worlds_above_reach_every_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: set[tuple[CandidateState, bool]] = set()
    can_be = Spending.can_be

    def watched(self: Spending, candidate: Candidate) -> bool:
        granted = can_be(self, candidate)
        if not granted:
            refused.add((candidate.state, candidate.confirmations > 1))
        return granted

    monkeypatch.setattr(Spending, "can_be", watched)
    for seed in range(60):
        played(spec_of(seed, budget_micro_money=900_000 - 10_000 * seed, budget_device_ns=(40 - seed // 2) * RUN))
    assert refused == {(CandidateState.DRAFTING, False), (CandidateState.CONFIRMING, True)}


def test_the_winner_is_measured_afresh_however_little_is_left() -> None:
    least = (1 + 1 + MAX_VERIFICATIONS + 2) * RUN  # admission, initial kernel, the end, one candidate
    for seed in range(8):
        spec = spec_of(seed, budget_device_ns=least)
        world = played(spec)
        best = world.rows.records[spec.id].best
        assert best is not None or world.rows.records[spec.id].verifications == MAX_VERIFICATIONS
        assert any(job.startswith(f"{spec.id}-") and ".verify" in job for job in world.rows.settled)


def test_a_failed_call_is_spent_and_one_that_cannot_be_paid_twice_is_given_up() -> None:
    spec = spec_of(3, budget_candidates=1, budget_tokens=30_000, in_flight=1)
    bound = call_bound_of(spec, "large")

    def cut(request: DraftRequest) -> DraftEvent:
        used = {"model": request.model, "input_tokens": bound.input_tokens, "output_tokens": bound.output_tokens}
        return DraftFaulted(candidate=request.candidate, kind="stall", text="cut", retry_after=SECOND, **used)

    simulation = Simulation(cut, lambda job: report_for(job, VerdictCode.OK))
    simulation.submit(spec, INITIAL)
    simulation.run()
    one = simulation.rows.candidates[CandidateId(f"{spec.id}-1")]
    assert (one.state, one.outcome, one.told) == (CandidateState.DISCARDED, "budget", None)
    assert one.input_tokens + one.output_tokens == bound.input_tokens + bound.output_tokens == 21_000
    assert simulation.rows.spent[spec.id].tokens == 21_000
    assert sum(isinstance(command, StartDraft) for command in simulation.commands) == 1


def test_f18_what_a_provider_counts_above_what_it_may_is_booked_and_nothing_more_is_begun() -> None:
    spec = spec_of(3, budget_tokens=50_000, in_flight=1)

    def greedy(request: DraftRequest) -> DraftEvent:
        return replace(arrived(request, f"kernel {request.ordinal}"), model=request.model, input_tokens=1 << 60)

    simulation = Simulation(greedy, lambda job: report_for(job, VerdictCode.OK))
    simulation.submit(spec, INITIAL)
    simulation.run()
    assert simulation.rows.records[spec.id].reason == "budget: tokens"
    assert sum(isinstance(command, StartDraft) for command in simulation.commands) == 1
    assert simulation.rows.spent[spec.id].tokens == 1 << 40


def test_other_model_calls_take_part_by_a_key_of_their_own() -> None:
    spec = spec_of(1, budget_tokens=25_000, budget_device_ns=10 * RUN)
    spending = Spending(spec, CampaignRecord(id=spec.id, state=CampaignState.RUNNING, admitted=True), [], ZERO)
    assert spending.reserve_call("prompt:1", "large") is None
    assert spending.reserve_call("prompt:2", "large") is None
    assert spending.reserve_call("prompt:3", "small") == "tokens"
    spending.release("prompt:2")
    assert spending.account.committed.tokens == 10_000
    (saved,) = spending.settle_call("prompt:1", "large", 4_000, 500)
    assert (saved.key, saved.cost) == ("prompt:1", Amount(tokens=4_500, micro_money=19_500))
    assert spending.account.committed.tokens == 4_500
    assert spending.settle_call("prompt:1", "large", 4_000, 500) == []  # once
    with pytest.raises(ValueError, match="reserved already"):
        _ = [spending.reserve_call("prompt:3", "small") for _ in range(2)]
    assert spending.settle_call("prompt:3", "small", 0, 0) == []
    assert spending.account.committed.tokens == 4_500


@pytest.mark.parametrize("terms", [(), (replace(LARGE, output_price=None), SMALL)])
def test_f17_nothing_of_unknown_price_is_reserved_under_a_budget_of_money(terms: tuple[ModelTerms, ...]) -> None:
    record = CampaignRecord(id=CampaignId("c"), state=CampaignState.RUNNING)
    for budget in ({"budget_tokens": 10**9}, {"budget_micro_money": 10**9}):
        spending = Spending(spec_of(1, terms=terms, **budget), record, [], ZERO)
        if "budget_tokens" in budget:
            assert spending.reserve_call("a", "large") is None
        else:
            with pytest.raises(ValueError, match="price is unknown"):
                spending.reserve_call("a", "large")


@pytest.mark.parametrize(
    ("attempt", "stages", "cost"),
    [
        (1, (("fetch", 9 * RUN), ("check", 5), ("benchmark", 7), ("upload", RUN)), 12),
        (2, (("check", RUN), ("benchmark", RUN)), RUN),
        (1, (("fetch", 5),), 0),
        (1, (), RUN),
        (0, (), 0),
    ],
)
def test_device_time_is_what_checking_and_benchmarking_took_and_unknown_is_not_zero(
    attempt: int, stages: tuple[tuple[str, int], ...], cost: int
) -> None:
    job = replace(admit_job(spec_of(1)), attempt=attempt)
    for report in (report_for(job, VerdictCode.OK), Report(outcome=Incident(code=IncidentCode.DEVICE))):
        assert device_cost(job, replace(report, stages_ns=stages), RUN) == cost


def test_a_campaign_with_nothing_left_to_ask_blames_no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = SearchPolicy(operators=OperatorPolicy(rewrite=1.0, patch=0.0, template_every=0))
    spec = spec_of(1, budget_device_ns=8 * RUN, terms=(), search=policy)
    monkeypatch.setattr(Campaign, "proposal", lambda _: None)
    monkeypatch.setattr(Spending, "draft", lambda *_: Amount(device_ns=100 * RUN))  # nothing would fit
    simulation = Simulation(World()._said, lambda job: report_for(job, VerdictCode.OK))
    simulation.submit(spec, INITIAL)
    simulation.run()
    assert simulation.rows.records[spec.id].reason == "nothing left to ask"
    assert not any(isinstance(command, StartDraft) for command in simulation.commands)
