"""Device-form tasks as the loader reads them: the launch plan is part of what can be wrong with a package."""

from __future__ import annotations

from pathlib import Path

import pytest

from kfd.tasks import load, pack, problems
from kfd.tasks.signature import c_signature
from kfd.tasks.tar import Entry, write

TASKS = Path(__file__).resolve().parents[2] / "tasks"
SHIPPED = ("softmax_opencl", "softmax_sycl", "matmul_opencl", "matmul_sycl")
FILES = {name: (TASKS / "softmax_opencl" / name).read_text() for name in ("config.yaml", "task.py", "kernel.cl")}


def archive(file: str = "kernel.cl", old: str = "", new: str = "") -> bytes:
    assert old in FILES[file]
    changed = {**FILES, file: FILES[file].replace(old, new, 1)}
    return write(Entry(name, text.encode()) for name, text in changed.items())


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_tasks_are_in_order(name: str) -> None:
    data = pack(TASKS / name)
    assert problems(data) == []
    spec = load(data).spec
    assert spec.toolchain == name.partition("_")[2]
    assert spec.has_recordings
    assert any(size % 2 for case in spec.cases if case.timed for _, size in case.sizes)
    assert c_signature(spec).startswith("kernel solve from (const float *")


@pytest.mark.parametrize(
    ("file", "old", "new", "says", "mend"),
    [
        ("kernel.cl", "grid(rows)", "grid(row)", "`row` uses row, which is no size", "Did you mean rows?"),
        ("kernel.cl", "block(1)", "block(0)", "block of solve `0` is 0", "between 1 and 1024"),
        ("kernel.cl", "grid(rows)", "grid(rows - 1)", "grid of solve `rows - 1` is 0", "between 1 and"),
        ("kernel.cl", "// [LAUNCH]", "// [LAUNCHES]", "a misspelt [LAUNCH] comment", "Begin the comment with"),
        ("kernel.cl", "// [LAUNCH] launch", "// launch", "there is no launch plan", "inside the EVOLVE block"),
        ("kernel.cl", "launch solve grid", "launch other grid", "does not start solve", "set `entry`"),
        ("config.yaml", "kernel.cl", "kernel.cpp", "is not in the package", "Did you mean `kernel.cl`?"),
        ("config.yaml", "opencl:cpu", "opencl:cpi", "target 'opencl:cpi' is not known", "Did you mean `opencl:cpu`?"),
        ("config.yaml", "-cl-std=CL3.0", "-I/etc", "flag '-I/etc' is not allowed", "docs/tasks.md"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(file: str, old: str, new: str, says: str, mend: str) -> None:
    found = problems(archive(file, old, new))
    assert len(found) == 1
    assert says in str(found[0])
    assert mend in found[0].mend
    if "no launch plan" not in says:
        assert found[0].line == FILES[file][: FILES[file].index(old)].count("\n") + 1


def test_a_kernel_that_is_generated_from_nothing_needs_no_plan_yet() -> None:
    text = FILES["kernel.cl"]
    start, end = text.index("// [EVOLVE_START]") + len("// [EVOLVE_START]\n"), text.index("// [EVOLVE_END]")
    assert problems(archive("kernel.cl", text[start:end], "")) == []


def test_targets_of_one_toolchain_may_be_several() -> None:
    data = archive("config.yaml", "target: opencl:cpu", "targets: ['opencl:cpu', 'opencl:pvc']")
    assert load(data).spec.targets == ("opencl:cpu", "opencl:pvc")
