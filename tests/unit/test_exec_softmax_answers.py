"""The recorded answers of the softmax task, as text: nothing is compiled here."""

from __future__ import annotations

from kfd.base.digest import Digest
from kfd.prompting.features import normal_form
from kfd.tasks import load, pack
from kfd.tasks.spec import KernelFile
from tests.integration.exec_recordings import walk
from tests.integration.exec_softmax_answers import FOLDER, recordings, tree

SPEC = load(pack(FOLDER)).spec
STEPS = list(walk(SPEC.kernel, tree(), SPEC.entry))


def test_the_recordings_in_the_folder_are_those_of_the_tree() -> None:
    found = {str(path.relative_to(FOLDER)): path.read_text() for path in (FOLDER / "recorded").rglob("*.md")}
    assert found == recordings(), "write them again: python -m tests.integration.exec_softmax_answers"


def test_answers_make_candidates_or_are_refused_as_meant_and_none_is_there_twice() -> None:
    seen: dict[Digest, str] = {normal_form(SPEC.kernel.text): "the initial kernel"}
    for step in STEPS:
        assert isinstance(step.made, KernelFile) == (step.reply.ends != "refused"), (step.name, step.made)
        if isinstance(step.made, KernelFile):
            form = normal_form(step.made.text)
            assert form not in seen, f"{step.name} makes the same kernel as {seen[form]}"
            seen[form] = step.name


def test_every_way_to_end_is_recorded_with_three_generations_of_improvement() -> None:
    ends = {step.reply.ends for step in STEPS}
    assert ends == {"faster", "slower", "refused", "compile_error", "incorrect", "timeout", "runtime_error"}
    assert max(step.depth for step in STEPS if step.reply.ends == "faster") >= 3
    for step in STEPS:
        if step.reply.ends in ("compile_error", "incorrect", "timeout", "runtime_error"):
            assert any(reply.operator == "repair" for reply in step.reply.then), step.name


def test_the_task_has_odd_sizes() -> None:
    assert any(size % 2 for case in SPEC.cases if case.timed for _, size in case.sizes)
    assert (FOLDER / "kernel.cpp").read_text().count("immintrin") == 0
