"""The recorded answers of the device-form tasks, as text: nothing is compiled here."""

from __future__ import annotations

import pytest

from kfd.base.digest import Digest
from kfd.prompting.features import normal_form
from kfd.tasks import launchplan, load, pack
from kfd.tasks.spec import KernelFile, TaskSpec
from kfd.tasks.tunables import PlanError
from tests.integration.exec_device_answers import TREES, recordings
from tests.integration.exec_recordings import TASKS, Step, walk


def steps(name: str) -> tuple[TaskSpec, list[Step]]:
    spec = load(pack(TASKS / name)).spec
    return spec, list(walk(spec.kernel, TREES[name](), spec.entry))


@pytest.mark.parametrize("name", sorted(TREES))
def test_the_recordings_in_the_folder_are_those_of_the_tree(name: str) -> None:
    folder = TASKS / name
    found = {str(path.relative_to(folder)): path.read_text() for path in (folder / "recorded").rglob("*.md")}
    assert found == recordings(name), "write them again: python -m tests.integration.exec_device_answers"


@pytest.mark.parametrize("name", sorted(TREES))
def test_answers_make_candidates_or_are_refused_as_meant_and_none_is_there_twice(name: str) -> None:
    spec, made = steps(name)
    seen: dict[Digest, str] = {normal_form(spec.kernel.text): "the initial kernel"}
    for step in made:
        assert isinstance(step.made, KernelFile) == (step.reply.ends != "refused"), (step.name, step.made)
        if isinstance(step.made, KernelFile):
            form = normal_form(step.made.text)
            assert form not in seen, f"{step.name} makes the same kernel as {seen[form]}"
            seen[form] = step.name


@pytest.mark.parametrize("name", sorted(TREES))
def test_every_plan_can_be_read_and_every_way_to_end_is_there(name: str) -> None:
    spec, made = steps(name)
    for step in made:
        if isinstance(step.made, KernelFile):
            try:
                plan = launchplan.parse(step.made.text, spec.parameters, spec.toolchain)
            except PlanError as error:
                pytest.fail(f"{step.name}: {error}")
            assert spec.entry in {launch.kernel for launch in plan.launches}
    ends = {step.reply.ends for step in made}
    assert ends - {"slower"} == {"faster", "refused", "compile_error", "incorrect", "runtime_error"}
    assert max(step.depth for step in made if step.reply.ends == "faster") >= 3
    for step in made:
        if step.reply.ends in ("compile_error", "incorrect", "runtime_error"):
            assert any(reply.operator == "repair" for reply in step.reply.then), step.name
