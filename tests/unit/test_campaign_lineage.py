"""Several targets of one task: an archive for each, and elites that are tried on the others."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from kfd.base.digest import digest_of
from kfd.base.ids import CampaignId, CandidateId, campaign_of
from kfd.base.work import AdmitSpec, BuildSpec, Report, VerdictCode
from kfd.core.campaign.lineage import Lineage
from kfd.core.campaign.replay import replay
from kfd.core.campaign.state import CampaignSpec, CampaignState, Candidate
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftEvent
from kfd.core.fleet.model import Job
from kfd.core.search.archive import Elite
from kfd.core.search.operators import Operator
from kfd.testing.simulation import Simulation, arrived, drafted, report_for, sim_spec
from tests.property.test_search_restart import EVERYTHING


def number(*parts: object) -> int:
    return int(hashlib.sha256(repr(parts).encode()).hexdigest(), 16)


def answer(request: DraftRequest) -> DraftEvent:
    """A kernel of its own for every question; a migrant is the text of the elite that it was taken from."""
    if request.operator is Operator.MIGRATE:
        return arrived(request, f"text of {request.parent}", (1, 1, 1))
    dice = number(request.candidate)
    return arrived(request, f"text of {request.candidate}", (dice % 4, dice // 4 % 4, 0))


def judge(job: Job) -> Report:
    """Speeds differ by campaign, as they do by target."""
    if isinstance(job.spec.work, AdmitSpec) or "-0." in job.id:
        return report_for(job, VerdictCode.OK, 1.0)
    dice = number(job.id.rpartition(".")[0])
    if isinstance(job.spec.work, BuildSpec):
        return report_for(job, VerdictCode.COMPILE_ERROR if dice % 7 == 0 else VerdictCode.OK)
    return report_for(job, VerdictCode.OK, 0.5 + dice % 300 / 50)


def pair(group: str) -> tuple[CampaignSpec, CampaignSpec]:
    base = sim_spec("one", seed=5, search=EVERYTHING, budget_candidates=40, in_flight=4)
    other = sim_spec("two", seed=6, search=EVERYTHING, budget_candidates=40, in_flight=4)
    return replace(base, group=group), replace(other, group=group)


def started(group: str) -> Simulation:
    simulation = Simulation(answer, judge)
    for spec in pair(group):
        simulation.submit(spec, drafted("initial"))
    return simulation


def of(simulation: Simulation, campaign: CampaignId) -> list[Candidate]:
    return [one for one in simulation.rows.candidates.values() if campaign_of(one.id) == campaign]


def check(simulation: Simulation) -> None:
    """What holds at the end, whatever happened on the way."""
    candidates = simulation.rows.candidates
    for spec in pair("g"):
        record = simulation.rows.records[spec.id]
        assert (record.state, record.reason) == (CampaignState.FINISHED, "budget: 40 candidates")
        mine = of(simulation, spec.id)
        migrants = [one for one in mine if one.operator is Operator.MIGRATE]
        origins = [one.origin for one in migrants]
        assert len(set(origins)) == len(origins), "no elite is taken twice"
        assert {one.operator for one in mine if one.origin is None} >= {Operator.REWRITE}
        for one in migrants:
            assert one.origin is not None
            origin = candidates[one.origin]
            assert campaign_of(origin.id) != spec.id
            assert origin.operator not in (Operator.MIGRATE, Operator.INITIAL), "nothing goes back and forth"
            assert origin.told is not None
            assert origin.told.kept
            assert one.parent_source == origin.source
        charged = [one for one in mine if one.counts and one.operator is not Operator.INITIAL]
        assert len(charged) == 40
        assert len(migrants) <= 1 + 40 // 4


def test_elites_of_one_target_are_tried_on_the_other_and_breed_there() -> None:
    simulation = started("g")
    simulation.run()
    check(simulation)
    every = simulation.rows.candidates.values()
    migrants = [one for one in every if one.operator is Operator.MIGRATE]
    assert {campaign_of(one.id) for one in migrants} == {spec.id for spec in pair("g")}
    assert any(one.outcome == "ok" for one in migrants)
    owners = {owner for (_, cell), owner in simulation.rows.elites.items() if cell == (1, 1, 1)}
    assert owners & {one.id for one in migrants}, "a migrant owns a cell of the archive that it came to"
    parents = {one.parent for one in every}
    assert parents & {one.id for one in migrants}, "and has children there"
    # Two archives: no campaign's elite is a candidate of the other.
    assert all(campaign_of(owner) == campaign for (campaign, _), owner in simulation.rows.elites.items())


def test_campaigns_without_a_group_share_nothing() -> None:
    simulation = started("")
    simulation.run()
    assert all(one.operator is not Operator.MIGRATE for one in simulation.rows.candidates.values())


@pytest.mark.parametrize("every", [1, 3, 7])
def test_kills_at_any_moment_take_no_elite_twice_and_keep_the_budgets(every: int) -> None:
    simulation = started("g")
    for step in range(200):
        simulation.step()
        if step % every == 0:
            simulation.kill_daemon()
    simulation.run()
    check(simulation)


def test_a_campaign_with_migrants_is_proved_by_its_replay() -> None:
    simulation = started("g")
    simulation.run()
    for spec in pair("g"):
        mine = of(simulation, spec.id)
        proved = replay(simulation.rows.specs[spec.id], mine)
        assert proved.difference is None
        assert proved.decisions == sum(one.operator not in (Operator.INITIAL, Operator.MIGRATE) for one in mine)


def elite(name: str, fitness: float, ordinal: int = 3) -> Elite:
    return Elite(
        candidate=CandidateId(name),
        ordinal=ordinal,
        generation=1,
        cell=(0, 0, 0),
        fitness=fitness,
        speedup=1.0,
        low=1.0,
        high=1.0,
        source=name,
        artifact=digest_of(b""),
    )


def test_the_fittest_comes_first_and_never_more_than_one_in_four() -> None:
    lineage = Lineage()
    offered = [elite("b-3", 0.7), elite("b-4", 0.9), elite("b-5", 0.9)]
    first = lineage.next(offered, 0)
    assert first is not None
    assert first.candidate == "b-4"
    taken = of_migrant("a-1", "b-4")
    lineage.note(taken)
    assert lineage.next(offered, 3) is None
    second = lineage.next(offered, 4)
    assert second is not None
    assert second.candidate == "b-5"
    held = [elite("a-0", 0.6, ordinal=0), elite("a-1", 0.8), elite("a-2", 0.7)]
    assert [one.candidate for one in lineage.exports(held, CandidateId("a-0"))] == ["a-2"]
    assert [one.candidate for one in lineage.exports(held, None)] == ["a-0", "a-2"], "a campaign from nothing bred it"
    assert Lineage([taken]).next(offered, 4) == second, "what is stored restores it"


def of_migrant(name: str, origin: str) -> Candidate:
    return Candidate(
        id=CandidateId(name),
        ordinal=1,
        operator=Operator.MIGRATE,
        parent=None,
        parent_source="s",
        origin=CandidateId(origin),
        inspirations=(),
        nth=0,
        generation=1,
        repair_depth=0,
    )
