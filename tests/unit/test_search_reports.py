"""Reports of users of other systems about scores, archives, islands, limits and models, held against ours."""

from __future__ import annotations

import gc
import json
import math
from collections import Counter
from dataclasses import fields, replace
from functools import cache

import pytest

from benchmarks.behaviour.corpus import kernels
from benchmarks.search.contestants import PLAIN as CONTESTANTS
from benchmarks.search.ours import ours
from benchmarks.search.world import BUDGET, World
from kfd.base.ids import CandidateId
from kfd.base.work import BuildSpec, Report, VerdictCode
from kfd.core.campaign.evolution import meta_model
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftEvent, DraftRejected
from kfd.core.fleet.model import Job
from kfd.core.search.archive import LEVELS, Archive, Cell, Elite
from kfd.core.search.bandit import BanditPolicy
from kfd.core.search.gradient import Gradient
from kfd.core.search.hints import HintPolicy, hints_at
from kfd.core.search.operators import Operator, OperatorPolicy
from kfd.core.search.plateau import PlateauPolicy
from kfd.core.search.prompt_archive import Edit, EditError, PromptArchive, PromptPolicy, Region, Variant, mutated
from kfd.core.search.proposals import Proposal, SearchPolicy, View
from kfd.core.search.search import Search
from kfd.core.search.settings import policy_of
from kfd.core.search.strategies import Islands, ParentWeights
from kfd.core.search.sweep import Point, SweepRow, next_point
from kfd.core.search.tuning import Declared, TunePolicy
from kfd.prompting.features import behaviour
from kfd.testing.simulation import Simulation, arrived, report_for, sim_spec
from kfd_client.jsonout import json_line
from tests.unit.test_client_render import campaign, speed
from tests.unit.test_core_campaign import INITIAL, answer, is_admission, judge
from tests.unit.test_core_search import elite as measured
from tests.unit.test_search_facade import DICE, ELITES, FIRST, PLAIN, asked, elite, failed, outcome
from tests.unit.test_search_settings import keys, other

# ---- D: scores, archive, islands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_d06_a_number_that_is_none_is_valid_json(value: float) -> None:
    plain = json.loads(json_line(campaign(best_speeds=[speed(value=value)])), parse_constant=pytest.fail)
    assert plain["best_speeds"][0]["value"] is None


def test_d08_kernels_spread_over_the_cells() -> None:
    found = [behaviour(kernel.text, kernel.language) for kernel in kernels()]
    assert max(Counter(found).values()) < len(found) / 4
    assert len(set(found)) >= 20
    for axis in range(3):
        levels = Counter(cell[axis] for cell in found)
        assert set(levels) == set(range(LEVELS))
        assert max(levels.values()) < 0.75 * len(found)


def test_d09_failures_are_rows_and_never_elites() -> None:
    def never(job: Job) -> Report:
        if is_admission(job) or job.id.split(".")[0].endswith("-0"):
            return report_for(job, VerdictCode.OK)
        built = isinstance(job.spec.work, BuildSpec)
        return report_for(job, VerdictCode.OK if built else VerdictCode.TIMEOUT)

    spec = sim_spec()
    simulation = Simulation(answer, never)
    simulation.submit(spec, INITIAL)
    simulation.run()
    assert simulation.outcomes(spec.id) == {"ok": 1, "timeout": 20}
    assert list(simulation.rows.elites.values()) == [f"{spec.id}-0"]


def test_d09_what_cannot_be_added_leaves_the_archive_as_it_was() -> None:
    archive = Archive([measured(1)])
    for wrong in ({"fitness": math.nan}, {"cell": (0, 0, 4)}, {"low": 2.0, "high": 3.0}):
        with pytest.raises(ValueError, match=r"finite|no such cell|enclose"):
            archive.add(measured(2, **wrong))
    assert [one.candidate for one in archive] == ["c-1"]
    assert archive.best() == measured(1)


def test_d11_a_weak_sole_owner_of_a_cell_outlives_any_pressure_elsewhere() -> None:
    weak = measured(0, 0.01, cell=(3, 3, 3))
    archive = Archive([weak, measured(1)])
    for n in range(2, 3000):
        cell = (n % 4, n // 4 % 4, n // 16 % 3)
        owner = next((one.candidate for one in archive if one.cell == cell), None)
        archive.add(measured(n, 1 + n / 100, cell), beaten=owner)
    assert len(archive) == 49
    assert weak in list(archive)


def test_d12_displaced_elites_are_forgotten() -> None:
    policy = replace(PLAIN, parents=ParentWeights(island=1.0, islands=3, migration_interval=5))
    search, archive = Search(policy, DICE, FIRST), Archive()
    search.begin(ELITES[0])
    before = _living()
    for n in range(1, 3001):
        cell = (n % 4, 0, 0)
        child = replace(elite(n, cell, 0.5 + n / 1000), candidate=CandidateId(f"d-{n}"))
        archive.add(child, beaten=next((one.candidate for one in archive if one.cell == cell), None))
        search.tell(outcome(asked(search, View(elites=tuple(archive)), n), n, child))
        del child
    assert len(archive) == 4
    assert _living() - before <= 4 + 3 * 4


def _living() -> int:
    gc.collect()
    return sum(type(one) is Elite for one in gc.get_objects())


def test_d13_one_island_is_one() -> None:
    islands = Islands(ParentWeights(islands=1, migration_interval=1))
    islands.add(elite(1), 7)
    assert not islands.evaluated()
    assert (islands.sizes, {islands.turn(n) for n in range(9)}) == ((1,), {0})


def test_d13_one_inspiration_and_one_hint_are_one() -> None:
    search = Search(replace(PLAIN, inspirations=1), DICE, FIRST)
    assert {len(asked(search, View(elites=ELITES), n).inspirations) for n in range(20)} == {1}
    strong = Gradient(combined=(0.9, 0.8, 0.7), moves=(9, 9, 9))
    assert [hint.direction for hint in hints_at((1, 1, 1), strong, HintPolicy(limit=1), trends={}, occupied=())] == [
        (0, 1)
    ]


def test_d13_one_prompt_variant_and_one_mutation_are_one() -> None:
    small = PromptArchive(PromptPolicy(size=1), (FIRST,))
    assert not small.add(replace(FIRST, id="b"))
    assert small.variants == (FIRST,)
    tried = (replace(FIRST, children=5), replace(FIRST, id="b", children=5))
    assert len(PromptArchive(PromptPolicy(mutations=1), tried).parents(DICE, 1)) == 1


def test_d13_a_sweep_of_one_point_is_one() -> None:
    assert _sweep(TunePolicy(budget=1)) == [(0, 0)]


def test_d16_migration_counts_evaluations_and_waits_for_no_island() -> None:
    parents = ParentWeights(uniform=0.0, fitness=0.0, curiosity=0.0, island=1.0, islands=3, migration_interval=10)
    search = Search(replace(PLAIN, parents=parents), DICE, FIRST)
    search.begin(ELITES[0])
    view = View(elites=ELITES)

    def known(island: int) -> set[object]:
        return {asked(search, view, n).parent for n in range(island, 300, 3)}

    # Only island 0 ever gets an answer; the others do not evolve at all.
    for n in range(1, 31):
        search.tell(outcome(asked(search, view, 3 * n), n, ELITES[2]))
        reached = {1: n >= 10, 2: n >= 20}
        assert {island: "c-2" in known(island) for island in reached} == reached, n


# ---- D17: every key does something -----------------------------------------------------------------------------------

ALL_ON = SearchPolicy(
    parents=ParentWeights(uniform=0.5, fitness=0.5, curiosity=2.0, island=1.0, migration_interval=15),
    hints=HintPolicy(limit=2, threshold=0.05, min_moves=4),
    operators=OperatorPolicy(crossover=0.3, template_every=7, simplify_every=9, simplify_above=2.0, repair_depth=2),
    bandit=BanditPolicy(),
    prompts=PromptPolicy(size=4, period=4),
    plateau=PlateauPolicy(patience=4, stop=True, min_gain=0.01),
    sweep=TunePolicy(budget=12, exhaustive=20),
    models=(("a", 1.0), ("b", 1.0)),
    inspirations=2,
)


@cache
def _trace(policy: SearchPolicy) -> list[object]:
    """Every decision of a scripted campaign of 480 candidates that stops to improve after 360, and two sweeps."""
    first = replace(FIRST, regions={Region.STRATEGIES: "tile", Region.ANALYSIS: "look"})
    search, made = Search(policy, DICE, first), list[object]()
    held: dict[Cell, Elite] = {ELITES[0].cell: ELITES[0]}
    search.begin(ELITES[0])
    for n in range(1, 481):
        broken = (failed(depth=n // 9 % 3),) if n % 9 == 0 else ()
        view = View(elites=tuple(held.values()), broken=broken, best_length_ratio=1.4 + n % 3 * 0.4)
        proposal = asked(search, view, n)
        child = _child(proposal, n)
        old = held.get(child.cell) if child is not None else None
        kept = child is not None and (old is None or child.fitness > old.fitness)
        best = kept and child is not None and child.fitness > max(one.fitness for one in held.values())
        if kept and child is not None:
            held[child.cell] = child
        told = outcome(proposal, n, child, best=best)
        search.tell(replace(told, kept=kept, price=0.01 + 0.04 * (proposal.model == "a")))
        made += [proposal, search.stop_reason(), search.stop_reason(0.9), meta_model(policy, DICE, n)]
        for variant in search.prompt_due(n):
            made.append(variant.id)
            try:
                search.prompt_evolved(_evolved(variant, n, policy))
            except EditError:
                made.append("refused")
    return [*made, *_sweep(policy.sweep, 4), *_sweep(policy.sweep, 6)]


def _child(proposal: Proposal, n: int) -> Elite | None:
    """A step from the parent's cell, a little better or worse; half of the answers fail, and no repair does."""
    if proposal.operator is not Operator.REPAIR and DICE.roll("fails", n) < 0.5:
        return None
    axis, up = int(DICE.roll("axis", n) * 3), DICE.roll("up", n) < 0.7
    level = min(LEVELS - 1, max(0, proposal.parent_cell[axis] + (1 if up else -1)))
    moved = (*proposal.parent_cell[:axis], level, *proposal.parent_cell[axis + 1 :])
    gain = 0.1 * (DICE.roll("gain", n) - (0.4 if n <= 360 else 1.0))
    return elite(n, (moved[0], moved[1], moved[2]), max(0.5, proposal.parent_fitness + gain))


def _evolved(variant: Variant, n: int, policy: SearchPolicy) -> Variant:
    edit = Edit(region=Region.ANALYSIS, search=variant.regions[Region.ANALYSIS], replace=f"look {n}")
    return mutated(variant, [edit], policy.prompts.pinned)


def _sweep(policy: TunePolicy, width: int = 4) -> list[Point]:
    """Points of a sweep over 5 times ``width`` values, in the order of measuring."""
    space = Declared(tunables=(("A", (1, 2, 3, 4, 5)), ("B", tuple(range(width))))).space()
    rows: list[SweepRow] = []
    while (point := next_point(space, rows, policy.sweep(), DICE, 1)) is not None:
        value = 1.0 + point[0] * 0.3 - abs(point[1] - 2) * 0.2
        rows.append(SweepRow(point=point, speedup=value, low=value * 0.99, high=value * 1.01))
    return [row.point for row in rows]


def test_the_scripted_campaign_is_a_function_of_its_policy() -> None:
    assert _trace.__wrapped__(ALL_ON) == _trace(ALL_ON)


@pytest.mark.parametrize(("section", "key"), keys())
def test_d17_every_key_changes_what_the_search_does(section: str, key: str) -> None:
    changed = policy_of({section: {key: other(getattr(getattr(ALL_ON, section), key))}}, ALL_ON)
    assert _trace(changed) != _trace(ALL_ON)


def test_d17_no_section_is_left_out() -> None:
    assert {section for section, _ in keys()} == {one.name for one in fields(SearchPolicy)} - {
        "models",
        "inspirations",
        "best_of_n",
        "axes",
    }
    changes: tuple[dict[str, object], ...] = (
        {"models": (("a", 9.0), ("b", 1.0))},
        {"inspirations": 0},
        {"best_of_n": True},
    )
    for change in changes:
        changed = replace(ALL_ON, **change)  # type: ignore[arg-type]
        assert _trace(changed) != _trace(ALL_ON)


@pytest.mark.parametrize("family", ["rugged", "measured"])
def test_d23_plain_sampling_is_played_at_the_same_budget_and_counted_alike(family: str) -> None:
    results = [ours(World(family, 10)), CONTESTANTS["best_of_n"](World(family, 10))]
    for result in results:
        assert 0 < result.evaluations <= BUDGET[family]
        assert result.arrived or result.evaluations == BUDGET[family]


# ---- E: restarts -----------------------------------------------------------------------------------------------------


def test_e04_nothing_hangs_on_the_success_of_a_candidate() -> None:
    def only_the_first(job: Job) -> Report:
        is_first = is_admission(job) or job.id.split(".")[0].endswith("-0")
        return judge(job) if is_first else report_for(job, VerdictCode.COMPILE_ERROR)

    spec = sim_spec()
    simulation = Simulation(answer, only_the_first)
    simulation.submit(spec, INITIAL)
    for _ in range(40):
        simulation.step()
        simulation.kill_daemon()
    simulation.run()
    assert simulation.outcomes(spec.id) == {"ok": 1, "compile_error": 20}


def test_e06_restarts_add_no_second_initial_kernel() -> None:
    spec = sim_spec()
    simulation = Simulation(answer, judge)
    simulation.submit(spec, INITIAL)
    for _ in range(3):
        simulation.kill_daemon()
        simulation.step()
    simulation.run()
    assert [one.ordinal for one in simulation.rows.candidates.values() if one.parent is None] == [0]
    assert simulation.rows.settled[f"{spec.id}-0.run"] == 1  # type: ignore[index]


# ---- F: models -------------------------------------------------------------------------------------------------------


def test_f18_tokens_of_answers_that_are_no_kernel_are_spent_too() -> None:
    def half_prose(request: DraftRequest) -> DraftEvent:
        if request.ordinal % 2:
            return arrived(request, f"kernel {request.ordinal}")
        return DraftRejected(
            candidate=request.candidate,
            reason="no_code",
            detail="prose",
            model="sim",
            input_tokens=100,
            output_tokens=10,
            texts=(),
        )

    spec = sim_spec()
    simulation = Simulation(half_prose, judge)
    simulation.submit(spec, INITIAL)
    simulation.run()
    rows = simulation.rows.candidates.values()
    refused = [one for one in rows if one.outcome == "no_code"]
    assert len(refused) == 10
    assert sum(one.input_tokens for one in refused) == 1000
    assert sum(one.output_tokens for one in refused) == 100
