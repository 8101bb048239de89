"""Whatever stands in a kernel's comments is a plan within bounds, or every problem has a mend."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.base.codec import decode, encode
from kfd.tasks import launchplan
from kfd.tasks.launchbind import bind
from kfd.tasks.launchplan import LaunchPlan
from kfd.tasks.spec import Parameter, Role
from kfd.tasks.tunables import PlanError
from kfd_worker.judge.device_plan import plan_order

PARAMETERS = (
    Parameter(name="x", role=Role.IN, dtype="float32", shape=("rows", "cols")),
    Parameter(name="y", role=Role.OUT, dtype="float32", shape=("rows", "cols")),
    Parameter(name="rows", role=Role.SIZE, dtype="int64"),
)
GOOD = (
    "// [TUNE] TILE in {16, 8}; VEC in {1, 2}; where TILE * VEC <= 64\n"
    "// [LAUNCH] scratch part: float32[rows, ceildiv(cols, TILE)]\n"
    "// [LAUNCH] launch one grid(ceildiv(cols, TILE), rows) block(TILE) args(x, part, rows, local(4 * TILE))\n"
    "// [LAUNCH] launch two grid(1) block(TILE, VEC) args(part, y, int32(rows - 1))\n"
)
PIECES = ["(", ")", "[", "]", "{", "}", ",", ";", ":", "=", "<=", "%", "//", "# [TUNE] ", "// [LAUNCH] ", "\n", "\r", "\0", "٣", "é",
          "launch ", "scratch ", "grid", "block", "args", "where ", " in ", "rows", "TILE", "99999999999999999999", "-1", "0"]  # fmt: skip
MEMORY = 1 << 30


def check(text: str, toolchain: str, sizes: dict[str, int]) -> None:
    problems = None
    try:
        plan = launchplan.parse(text, PARAMETERS, toolchain)
        bound = bind(plan, sizes, {}, MEMORY)
    except PlanError as error:
        problems = error.problems
    if problems is not None:
        assert 1 <= len(problems) <= 10
        assert all(problem.mend and problem.text for problem in problems)
        assert all(0 <= problem.line <= text.count("\n") + 1 for problem in problems)
        return
    assert decode(LaunchPlan, encode(plan)) == plan
    assert 1 <= len(bound.launches) <= 16
    assert len(bound.scratch) <= 16
    assert sum(bound.scratch) <= MEMORY
    for launch in bound.launches:
        assert min(*launch.grid, *launch.block) >= 1
        assert math.prod(launch.block) <= 1024
        assert math.prod(launch.grid) * math.prod(launch.block) <= 1 << 40
        assert 0 <= launch.shared <= 227 << 10
        assert len(launch.arguments) <= 64
        for kind, *rest in launch.arguments:
            assert kind in ("arg", "scratch", "local", "scalar")
            assert kind != "arg" or rest[0] in range(len(PARAMETERS))
            assert kind != "scratch" or rest[0] in range(len(bound.scratch))
    abi = {"kind": "opencl-binary"}
    header = {"abi": abi, "plan": encode(plan), "tunables": {}, "entries": {"one": "payload_one"}}
    assert plan_order(header, sizes, MEMORY)["scratch"] == list(bound.scratch)


@st.composite
def texts(draw: st.DrawFn) -> str:
    text = GOOD
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        to = draw(st.integers(at, min(len(text), at + 20)))
        text = text[:at] + draw(st.sampled_from(PIECES) | st.text(max_size=4)) + text[to:]
    return text


SIZES = st.fixed_dictionaries({"rows": st.integers(1, 1 << 20), "cols": st.integers(1, 1 << 20)})
TOOLCHAINS = st.sampled_from(["opencl", "sycl", "cuda", "triton"])


def test_the_good_plan_is_one() -> None:
    plan = launchplan.parse(GOOD, PARAMETERS, "opencl")
    assert len(bind(plan, {"rows": 3, "cols": 5}, {}, MEMORY).launches) == 2


@settings(max_examples=500, deadline=None)
@given(texts(), TOOLCHAINS, SIZES)
def test_a_damaged_plan_is_a_plan_or_is_refused_in_words(text: str, toolchain: str, sizes: dict[str, int]) -> None:
    check(text, toolchain, sizes)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), TOOLCHAINS)
def test_any_statement_is_a_plan_or_is_refused_in_words(statement: str, toolchain: str) -> None:
    for tag in ("// [LAUNCH] ", "# [TUNE] ", "// [LAUNCH] launch k grid(", "// [LAUNCH] scratch "):
        check(tag + statement, toolchain, {"rows": 3, "cols": 5})


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 1 << 40), st.integers(1, 1 << 40), st.integers(1, 2048))
def test_ceildiv_covers_every_element_and_no_group_more(rows: int, cols: int, tile: int) -> None:
    text = f"// [TUNE] TILE in {{{tile}}}\n// [LAUNCH] launch k grid(ceildiv(cols, TILE)) block(1) args(x)\n"
    plan = launchplan.parse(text, PARAMETERS, "cuda")
    try:
        (launch,) = bind(plan, {"rows": rows, "cols": cols}, {}, MEMORY).launches
    except PlanError:
        assert -(-cols // tile) > 2**31 - 1
        return
    assert (launch.grid[0] - 1) * tile < cols <= launch.grid[0] * tile
