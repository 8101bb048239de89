"""The hostile device kernels and the recorded answers, as far as a machine without a device can tell."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from kfd.base.digest import Digest
from kfd.base.work import VerdictCode
from kfd.prompting.features import normal_form
from kfd.tasks import launchplan, load, pack
from kfd.tasks.launchbind import bind
from kfd.tasks.spec import KernelFile
from kfd.tasks.tunables import PlanError
from tests.gpu import answers, hostile_cuda, hostile_triton
from tests.gpu.programs import Program, with_block
from tests.integration.exec_gpu_answers import TREES, recordings
from tests.integration.exec_recordings import TASKS, walk

SPECS = {task: load(pack(TASKS / task)).spec for task in TREES}
PROGRAMS = (*hostile_cuda.PROGRAMS, *hostile_triton.PROGRAMS, *answers.PROGRAMS)


@pytest.mark.parametrize(
    ("programs", "hostile", "honest"), [(hostile_cuda.PROGRAMS, 15, 5), (hostile_triton.PROGRAMS, 5, 5)]
)
def test_there_are_enough_programs_of_both_kinds(programs: tuple[Program, ...], hostile: int, honest: int) -> None:
    assert sum(not one.honest for one in programs) >= hostile
    assert sum(one.honest for one in programs) >= honest
    assert len({one.name for one in programs}) == len(programs)


@pytest.mark.parametrize("one", PROGRAMS, ids=lambda one: f"{one.task}-{one.name}")
def test_a_program_may_only_be_ok_when_it_is_honest_and_its_plan_is_as_meant(one: Program) -> None:
    codes = {code.value for code in VerdictCode}
    assert one.expect <= codes
    assert one.honest or "ok" not in one.expect
    spec = SPECS[one.task]
    text = with_block(spec.kernel.text, one.block)
    try:
        plan = launchplan.parse(text, spec.parameters, spec.toolchain)
        for case in spec.cases:
            bind(plan, dict(case.sizes), {}, 1 << 33)
    except PlanError:
        assert "compile_error" in one.expect


@pytest.mark.parametrize("task", TREES)
def test_the_recordings_in_the_folder_are_those_of_the_tree(task: str) -> None:
    folder = TASKS / task
    found = {str(path.relative_to(folder)): path.read_text() for path in (folder / "recorded").rglob("*.md")}
    assert found == recordings(task), "write them again: python -m tests.integration.exec_gpu_answers"


@pytest.mark.parametrize("task", TREES)
def test_answers_make_candidates_or_are_refused_as_meant_and_every_way_is_there(task: str) -> None:
    spec = SPECS[task]
    steps = list(walk(spec.kernel, TREES[task](), spec.entry))
    seen: set[Digest] = {normal_form(spec.kernel.text)}
    for step in steps:
        assert isinstance(step.made, KernelFile) == (step.reply.ends != "refused"), step.name
        if isinstance(step.made, KernelFile):
            plan = launchplan.parse(step.made.text, spec.parameters, spec.toolchain)
            assert spec.entry in {launch.kernel for launch in plan.launches}
            # Beside different parents the same kernel may come twice; it is never its parent.
            seen.add(normal_form(step.made.text))
    ends = [step.reply.ends for step in steps if step.depth == 1]
    assert {"faster", "compile_error", "incorrect", "refused"} <= set(ends)
    assert 6 <= len(ends) <= 10
    assert max(step.depth for step in steps if step.reply.ends == "faster") >= 2
    assert len(seen) >= len(ends)
