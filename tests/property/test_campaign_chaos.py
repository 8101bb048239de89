"""Groups, budgets, mutations, migrants, faults, pauses, a full disk, kills: campaigns end, and are proved."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.base.ids import CampaignId, campaign_of
from kfd.base.instant import SECOND
from kfd.base.work import Limits
from kfd.core.campaign.replay import replay
from kfd.core.campaign.state import CampaignSpec, CampaignState
from kfd.core.commands import DraftRequest
from kfd.core.events import CampaignPaused, CampaignResumed, DraftEvent, DraftFaulted, Event, SpaceChanged
from kfd.core.search.budgets import ZERO
from kfd.core.search.operators import Operator
from kfd.testing.simulation import Simulation, arrived, drafted, sim_spec
from tests.property.test_budget_laws import LARGE, SMALL
from tests.property.test_prompt_evolution import FIRST, PROMPTS, Slow, judge_calmly
from tests.property.test_search_restart import EVERYTHING, answer, number

RUN = 60 * SECOND
BUDGETS: tuple[dict[str, int], ...] = (
    {},
    {"budget_tokens": 12_500},
    {"budget_tokens": 60_000},
    {"budget_device_ns": 8 * RUN},
    {"budget_device_ns": 40 * RUN},
    {"budget_micro_money": 50_000},
    {"budget_micro_money": 1_000_000, "budget_tokens": 200_000, "budget_device_ns": 60 * RUN},
    {"budget_ns": 30 * SECOND},
)


class Awake(Simulation):
    """After every event: a campaign that runs and is not held has something in flight."""

    def post(self, event: Event) -> None:
        """Give the engine one event, then look for whoever sleeps."""
        super().post(event)
        for one in self.engine.campaigns.values():
            is_held = isinstance(event, SpaceChanged) or one._held
            assert is_held or one.record.state is not CampaignState.RUNNING or one.open_candidates, event


class Model:
    """Answers, and faults of every kind now and then, some of which have used tokens."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}

    def __call__(self, request: DraftRequest) -> DraftEvent:
        if request.operator is Operator.MIGRATE:
            return arrived(request, f"text of {request.parent}", (1, 1, 1))
        count = self.asked[request.candidate] = self.asked.get(request.candidate, 0) + 1
        dice = number(request.candidate, count)
        if request.operator is Operator.TUNE or dice % 9:
            return answer(request)
        return DraftFaulted(
            candidate=request.candidate,
            kind=("overload", "internal", "credentials")[dice // 9 % 3],
            text="no",
            retry_after=None if dice // 9 % 3 == 2 else SECOND,
            model="large",
            input_tokens=dice % 3 * 100,
        )


def specs_of(seed: int, targets: int) -> list[CampaignSpec]:
    made = []
    for nth in range(targets):
        dice = number(seed, nth, "spec")
        prompts = replace(PROMPTS, period=(0, 1, 3)[dice % 3], size=(1, 2, 4)[dice // 3 % 3])
        made.append(
            sim_spec(
                f"chaos-{seed}-{nth}",
                group="g",
                seed=dice % 2**40,
                search=replace(EVERYTHING, prompts=prompts),
                budget_candidates=(1, 2, 30)[dice // 9 % 3],
                in_flight=(1, 4, 9)[dice // 27 % 3],
                regions=FIRST,
                terms=(LARGE, SMALL),
                asks_again=dice % 2,
                run_limits=Limits(wall_ns=RUN),
                **BUDGETS[dice // 81 % len(BUDGETS)],
            )
        )
    return made


def resumed(simulation: Simulation) -> None:
    for id_ in list(simulation.engine.campaigns):
        simulation.ask(lambda call, one=id_: CampaignResumed(call=call, campaign=one))  # type: ignore[misc]


def paused(simulation: Simulation, nth: int) -> None:
    names: list[CampaignId] = list(simulation.engine.campaigns)
    if names:
        simulation.ask(lambda call: CampaignPaused(call=call, campaign=names[nth % len(names)], reason="a person"))


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(1, 2**40),
    targets=st.integers(1, 3),
    happenings=st.lists(st.sampled_from(["", "", "", "kill", "pause", "resume", "full", "free"]), max_size=60),
)
def test_whatever_happens_campaigns_end_within_their_budgets_and_are_proved(
    seed: int, targets: int, happenings: list[str]
) -> None:
    simulation = Awake(Model(), judge_calmly, mutate=Slow())
    specs = specs_of(seed, targets)
    for spec in specs:
        simulation.submit(spec, drafted("initial") if number(spec.id) % 5 else None)
    for nth, happening in enumerate(happenings):
        match happening:
            case "kill":
                simulation.kill_daemon()
            case "pause":
                paused(simulation, nth)
            case "resume":
                resumed(simulation)
            case "full" | "free":
                simulation.post(SpaceChanged(low=happening == "full", text="the disk"))
        simulation.step()
    simulation.post(SpaceChanged(low=False, text="the disk"))
    for _ in range(40):
        simulation.run()
        if not simulation.engine.campaigns:
            break
        resumed(simulation)  # faults that only a person can mend have paused it
    for spec in specs:
        record = simulation.rows.records[spec.id]
        assert record.state is CampaignState.FINISHED, record.reason
        mine = [one for one in simulation.rows.candidates.values() if campaign_of(one.id) == spec.id]
        assert not any(one.is_open for one in mine)
        assert sum(one.counts and one.operator is not Operator.INITIAL for one in mine) <= spec.budget_candidates
        spent = simulation.rows.spent.get(spec.id, ZERO)
        for limit, used in (
            (spec.budget_tokens, spent.tokens),
            (spec.budget_micro_money, spent.micro_money),
            (spec.budget_device_ns, spent.device_ns),
        ):
            assert limit is None or used <= limit
        assert replay(spec, mine, simulation.rows.mutations_of(spec.id)).difference is None
