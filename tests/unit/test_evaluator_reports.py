"""Public bug reports about other evaluators, put to ours (evaluation notes, section 6)."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from kfd.base.instant import SECOND  # noqa: E402
from kfd.tasks import pack  # noqa: E402
from kfd.tasks.targets import TOLERANCES  # noqa: E402
from kfd_worker.judge.admit import admit  # noqa: E402
from kfd_worker.judge.compare import compare  # noqa: E402
from kfd_worker.judge.faults import ReferenceFault  # noqa: E402
from kfd_worker.judge.floor import floor_ns, per_call_ns  # noqa: E402
from kfd_worker.judge.taskcode import LoadedTask  # noqa: E402
from tests.integration.exec_rig import write_task  # noqa: E402

CLASSES = [one for one in TOLERANCES.values() if one.tau > 0]
IDS = [one.error_class for one in CLASSES]

CONFIG = """
name: report
description: A task of a public report
flavour: native
target: cpp:native
kernel: kernel.cpp
entry: solve
interface:
  - {name: x, role: in, dtype: float32, shape: [n, m]}
  - {name: y, role: out, dtype: float32, shape: [n, %s]}
  - {name: n, role: size}
  - {name: m, role: size}
tolerance: {class: fp32}
baseline: reference
target_speedup: 2.0
limits: {build_seconds: 20, run_seconds: 20, memory_mb: 512}
budget: {candidates: 4}
"""
TASK = """
import torch

CASES = [{"name": "timed", "n": 33, "m": 65}, {"name": "small", "n": 3, "m": 5, "timed": False}]


def make_inputs(case, generator):
    return {"x": torch.%s(case["n"], case["m"], generator=generator)}


def reference(x):
    return %s
"""


def reason(folder: Path, expression: str, *, draw: str = "randn", width: str = "m") -> str:
    """Why a task is refused; empty when it is admitted."""
    path = write_task(folder / "task", config=CONFIG % width, task=TASK % (draw, expression))
    scratch = folder / "scratch"
    scratch.mkdir()
    task = LoadedTask(pack(path), scratch, len(os.sched_getaffinity(0)))
    try:
        return admit(task, lambda _: None).reason
    finally:
        task.close()


def test_a_task_that_can_tell_right_from_wrong_is_admitted(tmp_path: Path) -> None:
    assert reason(tmp_path, "torch.softmax(x * 3, dim=1)") == ""


def test_an_output_that_is_always_zero_is_no_task(tmp_path: Path) -> None:
    # KernelBench#108 and accelerator-agents#76: L2/80 takes the maximum over an axis and then its own mean away.
    text = reason(tmp_path, "(lambda top: top - top.mean(dim=1, keepdim=True))(x.amax(dim=1, keepdim=True))", width="1")
    assert "zeros" in text


def test_relu_of_what_is_never_negative_is_no_task(tmp_path: Path) -> None:
    # KernelBench L1/19 and its like, with inputs from [0, 1): the input itself is the answer.
    assert "input x" in reason(tmp_path, "torch.relu(x)", draw="rand")


def test_a_constant_is_no_task(tmp_path: Path) -> None:
    assert reason(tmp_path, "torch.full_like(x, 3.0)")


def test_an_answer_that_does_not_depend_on_the_draw_is_no_task(tmp_path: Path) -> None:
    assert reason(tmp_path, "torch.arange(x.numel(), dtype=x.dtype).view_as(x)")


def test_a_reference_that_changes_its_input_is_refused(tmp_path: Path) -> None:
    assert "input" in reason(tmp_path, "x.mul_(2.0).clone()")


def test_a_reference_that_fails_is_no_verdict_about_anybody(tmp_path: Path) -> None:
    with pytest.raises(ReferenceFault, match="reference fails"):
        reason(tmp_path, "x.nowhere()")


@pytest.mark.parametrize("tolerance", CLASSES, ids=IDS)
def test_zeros_are_no_softmax_however_small_its_values(tolerance: object) -> None:
    # KernelBench#165: 393216 uniform values make a softmax whose every value is below 1e-5.
    want = torch.softmax(torch.rand(1, 393216, generator=torch.Generator().manual_seed(1), dtype=torch.float64), dim=1)
    found = compare(torch.zeros(1, 393216), want, tolerance)  # type: ignore[arg-type]
    assert not found.passed
    assert found.relative_l2 == pytest.approx(1.0)


@pytest.mark.parametrize("tolerance", CLASSES, ids=IDS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_answer_that_makes_every_constraint_false_fails(tolerance: object, value: float) -> None:
    # openevolve#285 and pygpubench#7: comparisons with NaN are false, so a check for "not wrong" passes.
    want = torch.rand(4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert not compare(torch.full((4, 5), value), want, tolerance).passed  # type: ignore[arg-type]
    # Nor does one in the expected values become a wildcard.
    want[1, 2] = math.nan
    assert not compare(torch.zeros(4, 5), want, tolerance).passed  # type: ignore[arg-type]
    assert not compare(torch.full((4, 5), value), want, tolerance).passed  # type: ignore[arg-type]


def test_a_right_answer_with_a_nan_where_one_is_right_passes() -> None:
    want = torch.rand(4, 5, generator=torch.Generator().manual_seed(1)).double()
    want[1, 2] = math.nan
    assert all(compare(want.float(), want, tolerance).passed for tolerance in CLASSES)


def test_a_time_that_was_driven_to_zero_is_below_what_writing_takes() -> None:
    # reference-kernels#159: one shape at 0.000 collapses the geometric mean.
    assert floor_ns(1 << 20, 50e9) == pytest.approx((1 << 20) / 500e9 * SECOND, abs=1)
    assert floor_ns(1 << 20, 50e9) > per_call_ns(0, 0, 1)


@pytest.mark.parametrize(("took", "overhead"), [(100, 0), (100, 99), (100, 100), (100, 10**9), (1, 1), (0, 0)])
def test_taking_the_overhead_off_leaves_at_least_half_of_the_clock(took: int, overhead: int) -> None:
    left = per_call_ns(took, overhead, 1)
    assert left >= 1
    assert left >= took / 2
    assert left <= max(1, took)
