"""Further axes of the archive: what each tells apart, and that it keeps both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kfd.base.evidence import Evidence, to_fact
from kfd.base.work import BuildResult, BuildSpec, Report, VerdictCode
from kfd.core.campaign.replay import replay
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftEvent
from kfd.core.fleet.model import Job
from kfd.core.search.archive import fittest
from kfd.core.search.axes import ExtraAxis, extra_levels
from kfd.core.search.proposals import SearchPolicy
from kfd.core.search.settings import SettingsError, policy_of
from kfd.testing.simulation import Simulation, arrived, drafted, report_for, sim_spec
from tests.unit.test_campaign_lineage import elite


@pytest.mark.parametrize(
    ("axis", "length", "facts", "level"),
    [
        (ExtraAxis.LENGTH, 100, (), 0),
        (ExtraAxis.LENGTH, 150, (), 0),
        (ExtraAxis.LENGTH, 151, (), 1),
        (ExtraAxis.LENGTH, 301, (), 2),
        (ExtraAxis.LENGTH, 601, (), 3),
        (ExtraAxis.REGISTERS, 1, (), 0),
        (ExtraAxis.REGISTERS, 1, (("ptxas.a", "registers=32"),), 0),
        (ExtraAxis.REGISTERS, 1, (("ptxas.a", "registers=40"), ("ptxas.b", "registers=129 stack=0")), 3),
        (ExtraAxis.REGISTERS, 1, (("ptxas.a", "registers=64"), ("note", "registers=255")), 1),
        (ExtraAxis.VECTORS, 1, (), 0),
        (ExtraAxis.VECTORS, 1, (to_fact(Evidence(scalar=True)),), 0),
        (ExtraAxis.VECTORS, 1, (to_fact(Evidence(scalar=False)),), 1),
    ],
)
def test_levels(axis: ExtraAxis, length: int, facts: tuple[tuple[str, str], ...], level: int) -> None:
    assert extra_levels([axis], length=length, initial_length=100, facts=facts) == (level,)


def test_a_task_without_a_kernel_compares_with_a_plain_length() -> None:
    assert extra_levels([ExtraAxis.LENGTH], length=1400, initial_length=0, facts=()) == (0,)
    assert extra_levels([ExtraAxis.LENGTH], length=1600, initial_length=0, facts=()) == (1,)


def test_no_axis_is_no_level() -> None:
    assert extra_levels([], length=1, initial_length=1, facts=()) == ()


def played(axes: tuple[ExtraAxis, ...], length: int = 8, fact: tuple[str, str] = ("note", "none")) -> Simulation:
    """A campaign whose even children are ``length`` characters long and built with a fact; all of one cell."""

    def answer(request: DraftRequest) -> DraftEvent:
        made = arrived(request, f"{request.ordinal:02d}", (0, 0, 0))
        text = made.drafted.kernel_text.ljust(length if request.ordinal % 2 == 0 else 8, "x")
        return replace(made, drafted=replace(made.drafted, kernel_text=text))

    def judge(job: Job) -> Report:
        number = int(job.id.split(".")[0].rpartition("-")[2])
        report = report_for(job, VerdictCode.OK, 1 + number / 10)
        if isinstance(job.spec.work, BuildSpec) and number % 2 == 0 and isinstance(report.detail, BuildResult):
            report = replace(report, detail=replace(report.detail, facts=(fact,)))
        return report

    base = sim_spec(budget_candidates=12, in_flight=1)
    simulation = Simulation(answer, judge)
    simulation.submit(replace(base, search=SearchPolicy(axes=axes)), drafted("initial8"))
    simulation.run()
    return simulation


@pytest.mark.parametrize(
    ("axis", "length", "fact", "levels"),
    [
        (ExtraAxis.LENGTH, 60, ("note", "none"), {0, 3}),
        (ExtraAxis.REGISTERS, 8, ("ptxas.k", "registers=100"), {0, 2}),
        (ExtraAxis.VECTORS, 8, to_fact(Evidence(scalar=False)), {0, 1}),
    ],
)
def test_each_axis_keeps_two_kernels_of_a_cell_beside_each_other(
    axis: ExtraAxis, length: int, fact: tuple[str, str], levels: set[int]
) -> None:
    without = played((), length, fact)
    assert len(without.rows.elites) == 1
    simulation = played((axis,), length, fact)
    assert {niche for _, niche in simulation.rows.elites} == {(0, 0, 0, level) for level in levels}
    (loaded,) = simulation.rows.specs.values()
    assert replay(loaded, list(simulation.rows.candidates.values())).difference is None


def test_gradients_see_the_fittest_of_a_cell_whatever_its_niches() -> None:
    plain = elite("a-1", 0.6)
    assert fittest([replace(plain, extra=(1,), fitness=0.9), plain]) == {(0, 0, 0): 0.9}


@pytest.mark.parametrize("value", ["length", ["size"], ["length", "length"], [1], None, 3])
def test_what_is_no_list_of_axes_is_refused(value: object) -> None:
    with pytest.raises(SettingsError, match=r"search\.axes is a list of length, registers, vectors"):
        policy_of({"axes": value})


def test_axes_are_read_in_the_given_order() -> None:
    assert policy_of({"axes": ["vectors", "length"]}).axes == (ExtraAxis.VECTORS, ExtraAxis.LENGTH)
    assert policy_of({}).axes == ()
