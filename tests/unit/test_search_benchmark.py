"""The landscape simulator: exact optima, stated behaviour of the model, fair counting, and the peers' protocol."""

from __future__ import annotations

import ctypes
import itertools
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import sweep as sweep_benchmark
from benchmarks.search import measure_space
from benchmarks.search.contestants import PLAIN, Grid
from benchmarks.search.figures import difference_of_shares, ratio_of_medians
from benchmarks.search.harsh import HARSH, HarshModel
from benchmarks.search.landscape import FAMILIES, Genome, cells, landscape, tables
from benchmarks.search.model import FOLLOW, Question, SimulatedModel, SimulatedPrompt
from benchmarks.search.ours import MECHANISMS, ours, switched, whole
from benchmarks.search.peers import client
from benchmarks.search.world import BUDGET, SHARE, World
from kfd.core.search.sweep import Point, Space


@pytest.mark.parametrize("family", FAMILIES)
def test_an_instance_is_a_function_of_its_seed_and_starts_at_zero(family: str) -> None:
    one, other = landscape(family, 3), landscape(family, 3)
    assert one.optimum == other.optimum > 0
    assert one.log_speed(one.initial) == pytest.approx(0.0)
    assert one.optimum != landscape(family, 4).optimum


@pytest.mark.parametrize("family", ["smooth", "rugged"])
def test_the_stated_optimum_is_the_true_one(family: str) -> None:
    land = landscape(family, 5)
    best = 0.0
    for cell in cells():
        # Details add up, whatever the knobs: each is taken if it helps in this cell.
        plain = Genome(cell=cell, knobs=(0, 0, 0, 0))
        zero = land.log_speed(plain) or 0.0
        gains = [(land.log_speed(replace(plain, details=1 << bit)) or 0.0) - zero for bit in range(land.details)]
        ideas = sum(1 << bit for bit, gain in enumerate(gains) if gain > 0)
        for knobs in itertools.product(range(4), repeat=4):
            value = land.log_speed(Genome(cell=cell, knobs=knobs, details=ideas))
            best = max(best, value if value is not None else best)
    assert best == pytest.approx(land.optimum)


def test_measured_spaces_are_complete_and_every_time_is_reachable() -> None:
    assert len(tables()) >= 3
    for seed, table in enumerate(tables()):
        assert len(table["points"]) >= 200
        land = landscape("measured", seed)
        values = {
            land.log_speed(Genome(cell=cell, knobs=knobs))
            for cell in cells()
            for knobs in itertools.product(*(range(size) for size in land.knob_sizes))
        }
        assert max(value for value in values if value is not None) == pytest.approx(land.optimum)
        assert len(values - {None}) == len({point["ns"] for point in table["points"]})


def test_the_model_follows_hints_as_often_as_it_says() -> None:
    land = landscape("smooth", 1)
    model = SimulatedModel(land, 1)
    parent = Genome(cell=(1, 1, 1), knobs=(0,) * 4)
    went = 0
    for n in range(2000):
        # Other details each time: the model repeats itself only to the same question.
        asked = Question(
            operator="rewrite", parent=replace(parent, details=n % 64, knobs=(n % 4,) * 4), hints=((2, 1),)
        )
        went += model.answer(asked).genome.cell[2] == 2
    # Those that follow, and a sixth of the others' steps, upwards in three of five.
    assert FOLLOW < went / 2000 < FOLLOW + 0.25


def test_a_better_prompt_fails_less_and_a_shown_failure_is_mended_sometimes() -> None:
    land = landscape("smooth", 1)
    parent = Genome(cell=(2, 2, 2), knobs=(0,) * 4)

    def failures(prompt: SimulatedPrompt) -> int:
        model = SimulatedModel(land, 2)
        answers = [model.answer(Question(operator="patch", parent=parent, prompt=prompt)) for _ in range(1000)]
        return sum(answer.genome.bug != 0 for answer in answers)

    assert failures(SimulatedPrompt(pitfalls=1.0)) < 0.8 * failures(SimulatedPrompt(pitfalls=0.0))
    model = SimulatedModel(land, 3)
    bugs = [model.answer(Question(operator="repair", parent=replace(parent, bug=2))).genome.bug for _ in range(300)]
    assert {0, 2} == set(bugs)


def test_on_the_harsh_task_most_kernels_fail_and_repairs_mend_as_before() -> None:
    land = landscape("rugged", 1)
    parent = Genome(cell=(1, 1, 1), knobs=(0,) * 4)

    def failures(model: SimulatedModel, operator: str, bug: int) -> int:
        asked = Question(operator=operator, parent=replace(parent, bug=bug))
        return sum(model.answer(asked).genome.bug != 0 for _ in range(600))

    assert World(HARSH, 1).land.optimum == land.optimum
    assert failures(HarshModel(land, 1), "patch", 0) > 1.5 * failures(SimulatedModel(land, 1), "patch", 0)
    assert failures(HarshModel(land, 1), "rewrite", 0) > 0.6 * 600
    assert failures(HarshModel(land, 1), "repair", 2) == failures(SimulatedModel(land, 1), "repair", 2)


@pytest.mark.parametrize("name", ["greedy", "uniform", "ours"])
def test_every_answer_and_every_swept_point_counts_once(name: str) -> None:
    world = World("measured", 10)
    result = ours(world) if name == "ours" else PLAIN[name](world)
    assert 0 < result.evaluations <= BUDGET["measured"]
    assert result.arrived or result.evaluations == BUDGET["measured"]
    assert result.money >= 0.01 * result.evaluations


def test_arriving_needs_the_kernel_that_the_run_believes_in() -> None:
    world = World("smooth", 2)
    genomes = [world.first().genome]
    genomes += [
        Genome(cell=cell, knobs=knobs, details=63)
        for cell in cells()
        for knobs in itertools.product(range(4), repeat=4)
    ]
    for genome in genomes:
        judged = world.judge(genome)
        close = (world.land.log_speed(genome) or 0.0) >= world.land.optimum + math.log(SHARE)
        if world.arrived:
            break
    assert judged.correct
    assert close
    assert 1 < world.evaluations < len(genomes)


def test_within_noise_the_incumbent_stays() -> None:
    world = World("smooth", 2)
    grid = Grid(world.first())
    again = world.judge(world.land.initial)
    assert grid.add(replace(again, fitness=grid.best.fitness + 0.001)) == (False, False)


def test_every_mechanism_can_be_switched_over() -> None:
    assert any(MECHANISMS.values())
    for name in MECHANISMS:
        assert switched(name) != whole()


def test_ratios_are_paired_and_their_interval_holds_them() -> None:
    theirs = [float(n) for n in range(10, 60)]
    found = ratio_of_medians([0.5 * value for value in theirs], theirs)
    assert (found.value, found.low, found.high, found.n) == (0.5, 0.5, 0.5, 50)
    with pytest.raises(ValueError, match="paired"):
        ratio_of_medians([1.0], [1.0, 2.0])


def test_arrivals_are_compared_in_pairs() -> None:
    some = [n % 4 > 0 for n in range(100)]
    assert difference_of_shares(some, some) == (0.0, 0.0, 0.0)
    middle, low, high = difference_of_shares(some, [n % 2 > 0 for n in range(100)])
    assert middle == pytest.approx(0.25)
    assert 0.15 < low < 0.25 < high < 0.35
    with pytest.raises(ValueError, match="paired"):
        difference_of_shares([True], [True])


ADAPTER = """
import json, sys
told = []
for line in sys.stdin:
    message = json.loads(line)
    if message["do"] == "tell":
        told.append(message["id"])
    if message["do"] == "ask":
        answer = {"parent": told[0], "inspirations": told[-1:], "operator": "rewrite", "island": 0}
    else:
        answer = {}
    print(json.dumps(answer), flush=True)
"""


def test_a_peer_is_asked_and_told_through_its_own_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "adapter.py"
    script.write_text(ADAPTER)
    monkeypatch.setitem(client.PEERS, "fake", script)
    peer = client.PeerProcess("fake", Path(sys.executable))
    try:
        result = client.peer_run(peer, World("measured", 1))
    finally:
        peer.close()
    assert 0 < result.evaluations <= BUDGET["measured"]


def test_an_adapter_that_dies_is_reported_with_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "adapter.py"
    script.write_text("raise SystemExit('no such library')")
    monkeypatch.setitem(client.PEERS, "fake", script)
    peer = client.PeerProcess("fake", Path(sys.executable))
    try:
        with pytest.raises(RuntimeError, match=r"no such library|Broken pipe"):
            peer.say(do="start", seed=1)
    finally:
        peer.close()


@pytest.mark.parametrize("kernel", measure_space.SPACES, ids=lambda kernel: str(kernel.name))
def test_a_table_holds_the_allowed_points_that_its_template_declares(kernel: measure_space.KernelSpace) -> None:
    space = measure_space.declared(kernel.path.read_text())
    (table,) = [table for table in tables() if table["kernel"] == kernel.name]
    every = itertools.product(*(range(len(values)) for values in space.values))
    assert {tuple(point["index"]) for point in table["points"]} == {point for point in every if space.allows(point)}
    assert table["parameters"] == dict(zip(space.names, map(list, space.values), strict=True))
    assert all(point["ns"] > 0 for point in table["points"])


def test_two_points_of_a_template_are_built_and_agree(tmp_path: Path) -> None:
    (kernel,) = [one for one in measure_space.SPACES if one.name == "stencil"]
    space = measure_space.declared(kernel.path.read_text())
    inputs = [measure_space.floats(count, seed) for seed, count in enumerate(kernel.floats[:2])]
    outputs = []
    for point in ((0, 0, 0, 0, 0), (2, 3, 1, 1, 1)):
        path = measure_space.build(kernel, space.chosen(point), tmp_path)
        assert path is not None
        out = (ctypes.c_float * kernel.floats[2])()
        ctypes.CDLL(str(path)).run(*inputs, out)
        outputs.append(list(out))
    assert any(outputs[0])
    assert measure_space.same(*outputs)
    outputs[1][1000] += 1.0
    assert not measure_space.same(*outputs)


def test_the_sweep_benchmark_counts_points_until_the_bar_is_met() -> None:
    times: dict[Point, int] = {(a, b): 1000 - 10 * a - 10 * b for a in range(4) for b in range(4)}
    space = Space(names=("A", "B"), values=((1, 2, 4, 8),) * 2)
    assert 1 <= sweep_benchmark.ours(space, times, 1) <= len(times)
    assert 1 <= sweep_benchmark.at_random(times, 1) <= len(times)
    assert sweep_benchmark.at_random({(0, 0): 5}, 1) == 1
