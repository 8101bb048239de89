"""A campaign that is killed and restored asks what it would have asked: the search is its rows and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.base.ids import CandidateId
from kfd.base.work import AdmitSpec, BuildSpec, Incident, IncidentCode, Report, VerdictCode
from kfd.core.campaign.machine import Campaign
from kfd.core.campaign.replay import replay
from kfd.core.campaign.state import Asked, CampaignSpec, Candidate
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftEvent, DraftMissed, DraftRejected, Event
from kfd.core.fleet.model import Job
from kfd.core.search.bandit import BanditPolicy
from kfd.core.search.hints import HintPolicy
from kfd.core.search.operators import Operator, OperatorPolicy
from kfd.core.search.plateau import PlateauPolicy
from kfd.core.search.proposals import SearchPolicy
from kfd.core.search.search import RULES
from kfd.core.search.strategies import ParentWeights
from kfd.core.search.tuning import Declared, TunePolicy
from kfd.testing.simulation import Simulation, arrived, drafted, report_for, sim_spec

EVERYTHING = SearchPolicy(
    parents=ParentWeights(uniform=1.0, fitness=1.0, curiosity=2.0, island=1.0, migration_interval=7),
    hints=HintPolicy(threshold=0.0, min_moves=1, limit=3),
    operators=OperatorPolicy(crossover=0.5, repair_depth=2, template_every=9, simplify_every=11, simplify_above=1.0),
    bandit=BanditPolicy(),
    sweep=TunePolicy(budget=6, exhaustive=0, spread=2),
    plateau=PlateauPolicy(patience=5, min_gain=0.05),
    models=(("large", 1.0), ("small", 3.0)),
    inspirations=2,
)
"""Every mechanism that there is."""


SPACE = Declared(tunables=(("TILE", (16, 8, 32)), ("VEC", (1, 2, 4, 8))), conditions=(("TILE * VEC", "<=", "128"),))
"""Eleven of twelve points are allowed."""


def number(*parts: object) -> int:
    return int(hashlib.sha256(repr(parts).encode()).hexdigest(), 16)


def answer(request: DraftRequest) -> DraftEvent:
    """Most answers are kernels; some repeat an earlier one, some hold none, some questions have no answer."""
    dice = number(request.campaign.seed, request.ordinal)
    match dice % 12:
        case 0:
            return DraftMissed(candidate=request.candidate, text="no recording")
        case 1:
            return DraftRejected(
                candidate=request.candidate,
                reason="no_code_block",
                detail="none",
                model="m",
                input_tokens=3,
                output_tokens=7,
                texts=(),
            )
        case 2:
            return arrived(request, "the same again")
    if request.operator is Operator.TUNE:
        return arrived(request, f"{request.parent_source} {request.values}", (dice % 4, 0, 0))
    cell = (dice // 12 % 4, dice // 48 % 4, dice // 192 % 4)
    made = arrived(request, f"kernel {request.ordinal} " + "x" * (dice % 50), cell)
    if request.operator is Operator.TEMPLATE:
        return replace(made, drafted=replace(made.drafted, space=SPACE))
    return made


def judge(job: Job) -> Report:
    """Every verdict, and an incident now and then."""
    if isinstance(job.spec.work, AdmitSpec) or "-0." in job.id:
        return report_for(job, VerdictCode.OK, 1.0)
    dice = number(job.id.rpartition(".")[0])
    if dice % 23 == 0:
        return Report(outcome=Incident(code=IncidentCode.DEVICE, text="lost"))
    if isinstance(job.spec.work, BuildSpec):
        return report_for(job, VerdictCode.COMPILE_ERROR if dice % 7 == 0 else VerdictCode.OK)
    code = VerdictCode.INCORRECT if dice % 5 == 0 else VerdictCode.OK
    return report_for(job, code, 0.5 + dice % 300 / 50)


class Watched(Simulation):
    """After every event a campaign restored from the rows is asked beside the one that lives."""

    asked = 0

    def post(self, event: Event) -> None:
        """Give the engine one event, then compare."""
        super().post(event)
        for loaded in self.rows.loaded():
            live = self.engine.campaigns[loaded.spec.id]
            restored = Campaign(loaded, self.now)
            assert restored.point() == live.point()
            assert restored.proposal() == live.proposal()
            self.asked += 1


def spec_of(seed: int, policy: SearchPolicy) -> CampaignSpec:
    return sim_spec(f"restart-{seed}", seed=seed, search=policy, budget_candidates=60, in_flight=5)


@settings(deadline=None, max_examples=12)
@given(seed=st.integers(1, 2**40), from_nothing=st.booleans())
def test_the_restored_search_asks_what_the_killed_one_would_have(seed: int, from_nothing: bool) -> None:
    simulation = Watched(answer, judge)
    simulation.submit(spec_of(seed, EVERYTHING), None if from_nothing else drafted("initial"))
    simulation.run()
    assert simulation.asked > 10


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(1, 2**40), kill_at=st.sets(st.integers(0, 60), max_size=6))
def test_kills_change_nothing_that_was_decided(seed: int, kill_at: set[int]) -> None:
    """One candidate in flight: then nothing but the search decides, and whole campaigns must be equal."""
    spec = replace(spec_of(seed, EVERYTHING), in_flight=1, budget_candidates=25)
    calm, stormy = Simulation(answer, judge), Simulation(answer, judge)
    for simulation in (calm, stormy):
        simulation.submit(spec, drafted("initial"))
    calm.run()
    for step in range(61):
        if step in kill_at:
            stormy.kill_daemon()
        stormy.step()
    stormy.run()
    assert {one.id: (one.asked, one.values) for one in stormy.rows.candidates.values()} == {
        one.id: (one.asked, one.values) for one in calm.rows.candidates.values()
    }
    assert stormy.rows.elites == calm.rows.elites


def sickly(job: Job) -> Report:
    """A device that fails one candidate in nine, whatever is tried: slots are set aside again and again."""
    if "-0." not in job.id and number("device", job.id.rpartition(".")[0]) % 9 == 0:
        return Report(outcome=Incident(code=IncidentCode.DEVICE, text="lost"))
    return judge(job)


@settings(deadline=None, max_examples=12)
@given(seed=st.integers(1, 2**40), kill_at=st.integers(0, 60))
def test_a_campaign_on_a_sickly_device_comes_to_its_end(seed: int, kill_at: int) -> None:
    simulation = Simulation(answer, sickly)
    spec = spec_of(seed, EVERYTHING)
    simulation.submit(spec, drafted("initial"))
    for _ in range(kill_at):
        simulation.step()
    simulation.kill_daemon()
    simulation.run()
    assert not simulation.engine.campaigns
    assert sum(one.counts for one in simulation.rows.candidates.values() if one.ordinal) == spec.budget_candidates


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(1, 2**40), from_nothing=st.booleans(), steps=st.integers(5, 60))
def test_a_replay_makes_every_decision_again(seed: int, from_nothing: bool, steps: int) -> None:
    simulation = Simulation(answer, judge)
    spec = spec_of(seed, EVERYTHING)
    simulation.submit(spec, None if from_nothing else drafted("initial"))
    for _ in range(steps):
        simulation.step()
    stored = list(simulation.rows.candidates.values())
    result = replay(spec, stored)
    assert result.difference is None
    assert result.decisions == sum(one.operator is not Operator.INITIAL for one in stored)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda one: replace(one, operator=Operator.TEMPLATE, asked=replace(one.asked, strategy="due")), "operator"),
        (lambda one: replace(one, parent=CandidateId("c-999")), "parent"),
        (lambda one: replace(one, inspirations=()), "inspirations"),
        (lambda one: replace(one, asked=replace(one.asked, hints=((0, 1), (1, 1), (2, 1)))), "hints"),
        (lambda one: replace(one, asked=replace(one.asked, model="other")), "model"),
    ],
)
def test_a_replay_stops_at_the_first_decision_that_differs(change: Callable[[Candidate], Candidate], what: str) -> None:
    simulation = Simulation(answer, judge)
    spec = spec_of(11, EVERYTHING)
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    stored = sorted(simulation.rows.candidates.values(), key=lambda one: one.ordinal)
    at = next(n for n, one in enumerate(stored) if n > 20 and one.inspirations)
    stored[at] = change(stored[at])
    difference = replay(spec, stored).difference
    assert difference is not None
    assert (difference.candidate, difference.what) == (stored[at].id, what)


def test_a_replay_notices_another_point_of_a_sweep() -> None:
    simulation = Simulation(answer, judge)
    spec = spec_of(11, EVERYTHING)
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    points = [one for one in simulation.rows.candidates.values() if one.operator is Operator.TUNE]
    other = replace(points[1], values=points[0].values)
    stored = [other if one.id == other.id else one for one in simulation.rows.candidates.values()]
    difference = replay(spec, stored).difference
    assert difference is not None
    assert (difference.candidate, difference.what) == (other.id, "point")


@pytest.mark.parametrize(("budget", "points"), [(1, 0), (4, 3), (24, 10)])
def test_a_sweep_measures_allowed_points_once_and_within_its_budget(budget: int, points: int) -> None:
    policy = replace(EVERYTHING, sweep=TunePolicy(budget=budget), operators=OperatorPolicy(template_every=5))
    simulation = Simulation(answer, lambda job: report_for(job, VerdictCode.OK, 1.0 + number(job.id) % 100 / 50))
    spec = spec_of(5, policy)
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    candidates = simulation.rows.candidates.values()
    swept: dict[str, list[dict[str, int]]] = {one.id: [] for one in candidates if one.space is not None}
    for one in candidates:
        if one.operator is Operator.TUNE:
            swept[str(one.parent)].append(dict(one.values))
    assert swept
    assert max(map(len, swept.values())) == points
    for values in swept.values():
        assert len({tuple(point.items()) for point in values}) == len(values) <= points
        assert all(point["TILE"] * point["VEC"] <= 128 for point in values)
        assert {"TILE": 16, "VEC": 1} not in values  # the defaults are the template's own measurement
    assert sum(one.counts for one in candidates if one.ordinal) == spec.budget_candidates


@pytest.mark.parametrize("in_flight", [1, 8])
def test_a_template_that_is_awaited_is_not_asked_for_again(in_flight: int) -> None:
    policy = replace(EVERYTHING, operators=OperatorPolicy(template_every=10))
    simulation = Simulation(answer, judge)
    spec = replace(spec_of(5, policy), in_flight=in_flight)
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    asked = [one.asked.at for one in simulation.rows.candidates.values() if one.operator is Operator.TEMPLATE]
    assert len(asked) >= 2
    assert all(later - earlier >= 10 for earlier, later in pairwise(asked))


def test_a_replay_notices_an_outcome_that_was_changed() -> None:
    simulation = Simulation(answer, judge)
    spec = spec_of(11, EVERYTHING)
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    stored = [
        replace(one, told=replace(one.told, kept=False)) if one.told is not None and one.told.nth < 20 else one
        for one in simulation.rows.candidates.values()
    ]
    assert replay(spec, stored).difference is not None


def test_a_campaign_of_an_older_kfd_cannot_be_replayed() -> None:
    simulation = Simulation(answer, judge)
    spec = spec_of(11, EVERYTHING)
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    with pytest.raises(ValueError, match="older kfd"):
        replay(spec, [replace(one, asked=Asked()) for one in simulation.rows.candidates.values()])


@pytest.mark.parametrize("rules", [0, RULES + 1])
def test_a_campaign_that_other_rules_decided_has_no_differences_to_show(rules: int) -> None:
    """A store that was upgraded on the way: what its campaigns had decided by then was right."""
    spec = replace(spec_of(11, EVERYTHING), rules=rules)
    simulation = Simulation(answer, judge)
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    with pytest.raises(ValueError, match="begun by another kfd, whose search decided otherwise"):
        replay(spec, list(simulation.rows.candidates.values()))


@pytest.mark.parametrize(
    "mechanism", ["hints", "reaction", "crossover", "simplify", "template", "repair", "island", "tune"]
)
def test_the_worlds_above_reach_every_mechanism(mechanism: str) -> None:
    simulation = Simulation(answer, judge)
    for seed in (1, 2, 3):
        simulation.submit(spec_of(seed, EVERYTHING), drafted("initial"))
    simulation.run()
    seen = set()
    for one in simulation.rows.candidates.values():
        seen |= {one.operator.value, one.asked.strategy}
        seen |= {"hints"} if one.asked.hints else set()
        seen |= {"reaction"} if one.asked.reaction else set()
    assert mechanism in seen


@pytest.mark.parametrize("kills", [0, 40])
def test_a_campaign_from_nothing_counts_its_first_candidate_after_a_restart_too(kills: int) -> None:
    """Its candidate 0 is no task's own kernel: it was asked for, and has its place in the budget."""
    policy = SearchPolicy(operators=OperatorPolicy(template_every=0))
    spec = sim_spec("nothing", search=policy, budget_candidates=3, in_flight=1)
    simulation = Simulation(lambda request: arrived(request, f"kernel {request.ordinal}"), judge)
    simulation.submit(spec, None)
    for step in range(kills):
        if step % 3 == 0:
            simulation.kill_daemon()
        simulation.step()
    simulation.run()
    assert simulation.rows.records[spec.id].reason == "budget: 3 candidates"
    assert len(simulation.rows.candidates) == 3


@pytest.mark.parametrize("kill", [False, True])
def test_a_first_question_without_an_answer_ends_a_campaign_from_nothing(kill: bool) -> None:
    spec = sim_spec("nothing", budget_candidates=3, in_flight=1)
    simulation = Simulation(lambda request: DraftMissed(candidate=request.candidate, text="no recording"), judge)
    simulation.submit(spec, None)
    while not simulation.drafts:
        simulation.step()
    if kill:
        simulation.kill_daemon()
    simulation.run()
    assert simulation.rows.records[spec.id].reason == "nothing left to ask; no correct candidate"
