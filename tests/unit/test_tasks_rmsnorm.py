"""The task written from docs/tasks.md alone: its plan has values for every case, its reference is its formula."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from kfd.tasks import launchplan, load, pack
from kfd.tasks.launchbind import bind

torch = pytest.importorskip("torch")

FOLDER = Path(__file__).resolve().parents[2] / "tasks" / "rmsnorm_opencl"
SPEC = load(pack(FOLDER)).spec


@pytest.mark.parametrize("group", [16, 64, 256])
def test_every_case_starts_as_many_work_items_as_there_are_elements(group: int) -> None:
    plan = launchplan.parse(SPEC.kernel.text, SPEC.parameters, SPEC.toolchain)
    for case in SPEC.cases:
        sizes = dict(case.sizes)
        bound = bind(plan, sizes, {"GROUP": group}, SPEC.limits.memory_bytes)
        first, second = bound.launches
        assert (first.grid, first.block) == ((sizes["rows"], 1, 1), (1, 1, 1))
        assert second.grid[0] * group >= sizes["cols"] > (second.grid[0] - 1) * group
        assert second.grid[1] == sizes["rows"]
        assert bound.scratch == (4 * sizes["rows"],)


def test_the_reference_is_the_formula() -> None:
    module = runpy.run_path(str(FOLDER / "task.py"))
    given = module["make_inputs"](module["CASES"][2], torch.Generator().manual_seed(3))
    x, weight, epsilon = given["x"].double(), given["weight"].double(), given["epsilon"]
    found = module["reference"](x, weight, epsilon)
    for i in (0, 511, 1036):
        size = (sum(float(v) ** 2 for v in x[i]) / x.shape[1] + epsilon) ** 0.5
        expected = [float(w) * float(v) / size for v, w in zip(x[i], weight, strict=True)]
        assert torch.allclose(found[i], torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)
