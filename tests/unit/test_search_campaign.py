"""What the search means for whole campaigns, on the real engine: shorter kernels, crowded cells, plain sampling."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kfd.base.work import BuildSpec, Report, VerdictCode
from kfd.core.campaign.replay import replay
from kfd.core.campaign.state import CampaignSpec, CampaignState
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftEvent, DraftMissed
from kfd.core.fleet.model import Fact, Job
from kfd.core.search.archive import Cell
from kfd.core.search.crowding import crowd
from kfd.core.search.operators import Operator, OperatorPolicy
from kfd.core.search.prompt_archive import PromptPolicy
from kfd.core.search.proposals import SearchPolicy, View
from kfd.core.search.search import Search
from kfd.core.search.strategies import ParentWeights
from kfd.testing.simulation import Simulation, arrived, drafted, report_for, sim_spec
from tests.property.test_search_restart import EVERYTHING, judge
from tests.unit.test_search_facade import DICE, FIRST, asked, outcome

LONG = drafted("initial" + " x" * 60)


def played(spec: CampaignSpec, over: dict[str, float], lengths: list[int], *, kills: bool = False) -> Simulation:
    """Kernels of these lengths after the initial one, all at its speed; ``over`` is how they do beside a rival."""

    def answer(request: DraftRequest) -> DraftEvent:
        text = f"kernel {request.ordinal} "
        return arrived(request, text + "y" * (lengths[request.ordinal - 1] - len(text)))

    def judge(job: Job) -> Report:
        if isinstance(job.spec.work, BuildSpec):
            return report_for(job, VerdictCode.OK)
        return report_for(job, VerdictCode.OK, over.get(job.id.partition("-")[2], 1.0), over.get("beside"))

    simulation = Simulation(answer, judge)
    simulation.submit(spec, LONG)
    for _ in range(60 if kills else 0):
        simulation.step()
        simulation.kill_daemon()
    simulation.run()
    return simulation


@pytest.mark.parametrize("kills", [False, True])
def test_a_shorter_kernel_of_the_same_speed_takes_the_place_after_a_look_side_by_side(kills: bool) -> None:
    spec = sim_spec(budget_candidates=3, in_flight=1)
    simulation = played(spec, {}, [90, 89, 70], kills=kills)
    # 127 characters: 90 is a fifth shorter, 89 is not shorter than that by a fifth, 70 is again.
    assert set(simulation.rows.elites.values()) == {f"{spec.id}-3"}
    assert simulation.rows.records[spec.id].best == f"{spec.id}-3"
    confirmed = {job.partition("-")[2] for job in simulation.rows.settled if ".confirm" in job}
    assert confirmed == {"1.confirm1", "3.confirm1"}


def test_a_shorter_kernel_that_is_slower_side_by_side_displaces_nobody() -> None:
    spec = sim_spec(budget_candidates=1, in_flight=1)
    simulation = played(spec, {"1.run": 1.0, "1.confirm1": 0.97}, [50])
    assert f"{spec.id}-1.confirm1" in simulation.rows.settled
    assert simulation.rows.records[spec.id].best == f"{spec.id}-0"


def test_small_losses_are_not_added_up_over_restarts() -> None:
    """Each is 1.5 % slower than the last and within noise of it; the best stays what was proved of the first."""
    spec = sim_spec(budget_candidates=6, in_flight=1)
    speeds = {f"{n}.{job}": 0.985**n for n in range(1, 7) for job in ("run", "confirm1")}
    simulation = played(spec, {**speeds, "beside": 0.99}, [100, 80, 64, 51, 40, 32], kills=True)
    best = simulation.rows.records[spec.id].best
    assert best is not None
    assert 0.985 ** int(best.rpartition("-")[2]) >= 0.98
    calm = played(spec, {**speeds, "beside": 0.99}, [100, 80, 64, 51, 40, 32])
    assert calm.rows.elites == simulation.rows.elites


# ---- islands ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("island", "is_shown"), [(1.0, False), (0.0, True)])
def test_the_best_of_all_is_not_shown_to_the_children_of_an_island(island: float, is_shown: bool) -> None:
    parents = ParentWeights(uniform=1.0 - island, fitness=0.0, curiosity=0.0, island=island)
    spec = sim_spec(search=SearchPolicy(parents=parents, operators=OperatorPolicy(repair_depth=0, template_every=0)))
    requests: list[DraftRequest] = []

    def answer(request: DraftRequest) -> DraftEvent:
        requests.append(request)
        return arrived(request, f"kernel {request.ordinal}", (request.ordinal % 4, 0, 0))

    simulation = Simulation(answer, lambda job: report_for(job, VerdictCode.OK, 1.0))
    simulation.submit(spec, LONG)
    simulation.run()
    assert len(requests) == 20
    assert {request.best is not None for request in requests} == {is_shown}


# ---- crowded cells ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "share"),
    [({(0, 0, 0): 39}, None), ({(0, 0, 0): 40}, 1.0), ({(0, 0, 0): 40, (1, 0, 0): 10}, None), ({}, None)],
)
def test_a_crowd_is_more_than_four_fifths_of_forty(counts: dict[Cell, int], share: float | None) -> None:
    found = crowd(counts)
    assert (found.share if found is not None else None) == share


@pytest.mark.parametrize(("spread", "kills"), [(1, False), (1, True), (3, False)])
def test_d08_a_crowded_cell_is_told_of_once_whatever_is_killed(spread: int, kills: bool) -> None:
    def answer(request: DraftRequest) -> DraftEvent:
        return arrived(
            request, f"kernel {request.ordinal}", (1 if request.ordinal % 10 else 0, request.ordinal % spread, 0)
        )

    spec = sim_spec(budget_candidates=70)
    simulation = Simulation(answer, lambda job: report_for(job, VerdictCode.OK, 1.0))
    simulation.submit(spec, LONG)
    for _ in range(200 if kills else 0):
        simulation.step()
        simulation.kill_daemon()
    simulation.run()
    assert simulation.rows.records[spec.id].state is CampaignState.FINISHED
    told = [dict(one.body) for one in simulation.commands if isinstance(one, Fact) and one.kind == "search.crowded"]
    assert told == ([{"cell": "1,0,0", "share": 0.9, "correct": 40}] if spread == 1 else [])


# ---- plain sampling --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("from_nothing", [False, True])
@pytest.mark.parametrize("kills", [False, True])
def test_d23_a_campaign_of_plain_samples_asks_one_question_at_the_same_budget(from_nothing: bool, kills: bool) -> None:
    """With every mechanism configured: none of them has a say, and replay and restarts hold."""
    spec = sim_spec(search=replace(EVERYTHING, best_of_n=True), budget_candidates=30)
    requests: list[DraftRequest] = []

    def answer(request: DraftRequest) -> DraftEvent:
        requests.append(request)
        return arrived(request, f"kernel {request.ordinal}", (request.ordinal % 4, 0, 0))

    simulation = Simulation(answer, judge)
    simulation.submit(spec, None if from_nothing else LONG)
    for _ in range(40 if kills else 0):
        simulation.step()
        simulation.kill_daemon()
    simulation.run()
    parent = None if from_nothing else f"{spec.id}-0"
    assert {(one.operator, one.parent, one.inspirations, one.hints, one.best) for one in requests} == {
        (Operator.REWRITE, parent, (), (), None)
    }
    assert sorted({one.nth for one in requests}) == list(range(30))
    asked = [one for one in simulation.rows.candidates.values() if one.operator is not Operator.INITIAL]
    assert len(asked) == 30
    assert {one.outcome for one in asked} > {"ok", "incorrect"}
    assert {one.asked.strategy for one in asked} == {"best_of_n"}
    assert {one.asked.model for one in asked} == {"large", "small"}
    result = replay(spec, list(simulation.rows.candidates.values()))
    assert (result.difference, result.decisions) == (None, 30)


def test_plain_samples_that_have_no_answer_left_end_the_campaign() -> None:
    spec = sim_spec(search=SearchPolicy(best_of_n=True))
    simulation = Simulation(lambda request: DraftMissed(candidate=request.candidate, text="none"), judge)
    simulation.submit(spec, LONG)
    simulation.run()
    assert simulation.rows.records[spec.id].reason == "nothing left to ask"


def test_the_meta_prompter_has_nothing_to_do_beside_plain_samples() -> None:
    search = Search(SearchPolicy(best_of_n=True, prompts=PromptPolicy(period=1, min_children=1)), DICE, FIRST)
    search.tell(outcome(asked(search, View(elites=()), 1), 1, None))
    assert search.prompt_due(2) == ()
