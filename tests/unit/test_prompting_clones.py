"""Near-duplicates: what only renames its variables is the same kernel, and nothing else is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.base.work import VerdictCode
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftEvent
from kfd.prompting.clones import shape
from kfd.prompting.language import PYTHON, C
from kfd.testing.simulation import Simulation, arrived, drafted, report_for, sim_spec

CPP = """#include <cmath>
#define N 4
struct Pair { float low; float high; };
static float twice(float value) { return 2.0f * value; }
extern "C" int solve(const float *x, float *__restrict y, int64_t n) {
    float total = 0.0f;
    const int64_t half_of = n / 2;
    #pragma omp parallel for reduction(+ : total)
    for (int64_t i = 0; i < n; ++i) { float item = expf(x[i]) * M_PI; y[i] = twice(item); total += item; }
    Pair p = {total, 1.0f};
    return p.low > N && half_of > 3;
}
"""
TRITON = """
import triton
import triton.language as tl

@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    # [LAUNCH] launch softmax(x, y, n) over (n)
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    kept = at < n
    value = tl.load(x + row * n + at, mask=kept, other=0.0)
    tl.store(y + row * n + at, tl.exp(value), mask=kept)
"""


def renamed(text: str, **names: str) -> str:
    for old, new in names.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text


@pytest.mark.parametrize(
    "names", [{"i": "index"}, {"item": "v", "half_of": "h"}, {"x": "input", "y": "output", "n": "count"}]
)
def test_a_kernel_with_other_names_for_its_variables_has_the_same_shape(names: dict[str, str]) -> None:
    assert shape(renamed(CPP, **names)) == shape(CPP)


def test_names_may_be_swapped_between_scopes() -> None:
    one = "int f(float a, float b) { return a > b; }"
    assert shape(one) == shape("int f(float b, float a) { return b > a; }")
    assert shape(one) != shape("int f(float b, float a) { return a > b; }")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("expf", "exp2f"),
        ("M_PI", "M_E"),
        ("twice", "thrice"),
        ("solve", "other"),
        ("2.0f", "3.0f"),
        ("p.low", "p.high"),
        ("float low; float high", "float high; float low"),
        ("(+ : total)", "(* : total)"),
        ("N 4", "N 5"),
        ("i < n", "i <= n"),
        ("const int64_t half_of", "const int32_t half_of"),
        ("float item", "double item"),
    ],
)
def test_whatever_else_differs_is_another_kernel(old: str, new: str) -> None:
    assert old in CPP
    assert shape(CPP.replace(old, new)) != shape(CPP)


def test_functions_that_change_places_are_another_kernel() -> None:
    one = "static int f(int a) { return a + 1; } int solve(int a) { return 7; }"
    assert shape(one) != shape("int solve(int a) { return a + 1; } static int f(int a) { return 7; }")


def test_a_constant_of_the_library_is_no_variable() -> None:
    assert shape("float f(float a) { return a * INFINITY; }") != shape("float f(float a) { return a * NAN; }")


def test_python() -> None:
    same = renamed(TRITON, row="r", at="offsets", kept="inside", value="v")
    assert shape(same, PYTHON) == shape(TRITON, PYTHON)
    for old, new in (
        ("tl.exp", "tl.exp2"),
        ("mask=kept, other", "other=kept, mask"),
        ("softmax", "relu"),
        ("0.0)", "1.0)"),
    ):
        assert old in TRITON
        assert shape(TRITON.replace(old, new), PYTHON) != shape(TRITON, PYTHON)
    # What the launch plan speaks of keeps its name.
    assert shape(renamed(TRITON, x="source"), PYTHON) != shape(TRITON, PYTHON)


@given(st.text(max_size=300))
def test_no_text_is_a_fall(text: str) -> None:
    assert shape(text, C).hash
    assert shape(text, PYTHON).hash


def test_a_near_duplicate_is_discarded_with_its_reason_and_nothing_is_built() -> None:
    def answer(request: DraftRequest) -> DraftEvent:
        made = arrived(request, f"kernel {request.ordinal}")
        return replace(
            made, drafted=replace(made.drafted, shape="same" if request.ordinal in (3, 7, 9) else f"{request.ordinal}")
        )

    simulation = Simulation(answer, lambda job: report_for(job, VerdictCode.OK, 1.0))
    spec = sim_spec(budget_candidates=12)
    simulation.submit(spec, drafted("initial"))
    for step in range(60):
        simulation.step()
        if step % 3 == 0:
            simulation.kill_daemon()
    simulation.run()
    discarded = {one.ordinal: one for one in simulation.rows.candidates.values() if one.outcome == "near_duplicate"}
    assert len(discarded) == 2
    assert discarded.keys() < {3, 7, 9}
    assert all(one.artifact is None for one in discarded.values())
    assert all("names of its variables" in one.text for one in discarded.values())
