"""Tunables and launch plans: what they mean, and what is said about those that mean nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kfd.base.codec import decode, encode
from kfd.tasks import launchplan, tunables
from kfd.tasks.launchbind import bind
from kfd.tasks.launchplan import LaunchPlan, in_device_form
from kfd.tasks.spec import Parameter, Role
from kfd.tasks.tunables import PlanError

PARAMETERS = (
    Parameter(name="x", role=Role.IN, dtype="float32", shape=("rows", "cols * 2")),
    Parameter(name="y", role=Role.OUT, dtype="float16", shape=("rows", "cols")),
    Parameter(name="rows", role=Role.SIZE, dtype="int64"),
    Parameter(name="scale", role=Role.SCALAR, dtype="float32"),
)
SIZES = {"rows": 7, "cols": 33, "other": 4}
PLAN = """
kernel void one() { }
// [TUNE] TILE in {16, 8, 32}; VEC in {1, 2, 4}; where TILE * VEC <= 64 and VEC != 3
  //  [TUNE] DEEP in {-1, 5}
// [LAUNCH] scratch part: float64[rows, ceildiv(cols, TILE)]
// [LAUNCH] launch one grid(ceildiv(cols, TILE), rows) block(TILE) args(x, part, rows, TILE, local(4 * TILE))
// [LAUNCH] launch two grid(1) block(TILE, VEC, 2) args(part, y, scale, int32(rows - cols), int64(max(rows, VEC)), cols)
"""


def parse(text: str, toolchain: str = "opencl") -> LaunchPlan:
    return launchplan.parse(text, PARAMETERS, toolchain)


def one(statement: str, toolchain: str = "opencl") -> LaunchPlan:
    return parse(f"first line\n// [LAUNCH] {statement}\n", toolchain)


def test_a_plan_says_which_kernels_start_how_wide_and_on_what() -> None:
    bound = bind(parse(PLAN), SIZES, {}, 1 << 20)
    assert bound.order() == {
        "scratch": [7 * 3 * 8],
        "launches": [
            {
                "kernel": "one",
                "grid": [3, 7, 1],
                "block": [16, 1, 1],
                "shared": 0,
                "args": [["arg", 0], ["scratch", 0], ["arg", 2], ["scalar", "int64", 16], ["local", 64]],
            },
            {
                "kernel": "two",
                "grid": [1, 1, 1],
                "block": [16, 1, 2],
                "shared": 0,
                "args": [
                    ["scratch", 0],
                    ["arg", 1],
                    ["arg", 3],
                    ["scalar", "int32", -26],
                    ["scalar", "int64", 7],
                    ["scalar", "int64", 33],
                ],
            },
        ],
    }


def test_tunables_change_everything_that_names_them() -> None:
    bound = bind(parse(PLAN), SIZES, {"TILE": 8, "VEC": 4, "UNROLL": 9}, 1 << 20)
    assert bound.scratch == (7 * 5 * 8,)
    assert bound.launches[0].grid == (5, 7, 1)
    assert bound.launches[1].block == (8, 4, 2)


def test_a_plan_survives_the_way_to_the_run_side() -> None:
    plan = parse(PLAN)
    assert decode(LaunchPlan, encode(plan)) == plan
    assert [launch.line for launch in plan.launches] == [6, 7]
    pointers = [(argument.pointer, argument.dtype) for argument in plan.launches[0].arguments]
    assert pointers == [(True, "float32"), (True, "float64"), (False, "int64"), (False, "int64"), (True, "")]


def test_cuda_has_shared_memory_and_triton_warps_stages_and_constants() -> None:
    cuda = bind(one("launch k grid(rows) block(32) shared(rows * 4 bytes) args(x)", "cuda"), SIZES, {}, 1).launches[0]
    assert cuda.shared == 28
    text = "# [TUNE] B in {64, 128}\n# [LAUNCH] launch k grid(rows) warps(8) stages(2) args(x, y, cols, BLOCK=B * 2)\n"
    triton = bind(parse(text, "triton"), SIZES, {"B": 128}, 1).order()["launches"][0]
    assert triton["args"] == [["arg", 0], ["arg", 1], ["scalar", "int64", 33]]
    assert (triton["warps"], triton["stages"], triton["constants"]) == (8, 2, {"BLOCK": 256})
    assert triton["block"] == [256, 1, 1]
    default = bind(one("launch k grid(1) args(x)", "triton"), SIZES, {}, 1).launches[0]
    assert (default.warps, default.stages) == (4, 3)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("launch k grid() block(1) args(x)", "`grid` needs 1 to 3 numbers"),
        ("launch k grid(1, 1, 1, 1) block(1) args(x)", "`grid` needs 1 to 3 numbers"),
        ("launch k grid(1) args(x)", "`block` needs 1 to 3 numbers"),
        ("launch k grid(1) block(1)", "`args` names no argument"),
        ("launch k grid(1) block(1) args(x) grid(2)", "`grid` is there twice"),
        ("launch k grid(1) blok(1) args(x)", "Did you mean `block`?"),
        ("launch k grid(1) block(1) shared(4) args(x)", "`shared` is no clause of a opencl launch"),
        ("launch k grid(1) block(1) args(z)", "`z` is no argument, scratch buffer, size or tunable"),
        ("launch k grid(1) block(1) args(scal)", "Did you mean scale?"),
        ("launch k grid(1) block(1) args(rows + 1)", "no argument"),
        ("launch k grid(1) block(1) args(x,, y)", "nothing between two commas"),
        ("launch k grid(1) block(1) args(N=rows)", "Only Triton has those"),
        ("launch k grid(1) block(1 args(x)", "never closed"),
        ("launch k grid(row) block(1) args(x)", "Did you mean rows?"),
        ("launch k grid(scale) block(1) args(x)", "no size and no tunable"),
        ("launch k grid(rows ** 2) block(1) args(x)", "unexpected"),
        ("launch grid(1) block(1) args(x)", "`launch` begins no statement"),
        ("run k grid(1) block(1) args(x)", "`run` begins no statement"),
        ("launch k l grid(1) block(1) args(x)", "begins no statement"),
        ("launch k grid(1) block(1) args(x) and", "needs a list in brackets"),
        ("launch k grid(1) block(1) args(x); launch", "unexpected `;"),
        ("scratch x: float32[1]", "`x` cannot name a scratch buffer"),
        ("scratch rows: float32[1]", "`rows` cannot name a scratch buffer"),
        ("scratch p: flot32[1]", "Did you mean float32?"),
        ("scratch p: float32[]", "0 dimensions"),
        ("scratch p float32[1]", "is no scratch buffer"),
        ("scratch p: float32[rws]", "Did you mean rows?"),
        ("", "begins no statement"),
    ],
)
def test_what_is_wrong_with_a_statement_is_said_with_its_line_and_a_mend(statement: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        one(statement)
    first = caught.value.problems[0]
    assert first.line == 2
    assert says in str(first)
    assert first.mend


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("launch k grid(rows - 7) block(1) args(x)", "grid of k `rows - 7` is 0. It must lie between 1 and"),
        ("launch k grid(1, 65536) block(1) args(x)", "between 1 and 65535"),
        ("launch k grid(1) block(1025) args(x)", "between 1 and 1024"),
        ("launch k grid(1) block(64, 32) args(x)", "block of k has 2048 work-items"),
        ("launch k grid(1) block(1, 1, 65) args(x)", "between 1 and 64"),
        ("launch k grid(2147483647) block(1024) args(x)", "more than 1099511627776 work-items"),
        ("launch k grid(rows // (rows - 7)) block(1) args(x)", "division by zero"),
        ("launch k grid(1) block(1) args(x, int32(rows * 1000000000))", "an int32"),
        ("launch k grid(1) block(1) args(x, local(0))", "between 1 and"),
        ("launch k grid(1) block(1) args(x, local(200000), local(200000))", "400000 bytes of local memory"),
    ],
)
def test_what_leaves_its_bounds_in_a_case_is_said_with_its_line(statement: str, says: str) -> None:
    plan = one(statement)
    with pytest.raises(PlanError) as caught:
        bind(plan, SIZES, {}, 1 << 20)
    assert caught.value.problems[0].line == 2
    assert says in str(caught.value)


def test_scratch_stays_within_the_memory_limit_all_together() -> None:
    plan = parse(
        "// [LAUNCH] scratch p: uint8[rows * 100]\n// [LAUNCH] scratch q: uint8[rows * 100]\n"
        "// [LAUNCH] launch k grid(1) block(1) args(p, q)\n"
    )
    assert bind(plan, SIZES, {}, 1400).scratch == (700, 700)
    with pytest.raises(PlanError, match="scratch buffers need"):
        bind(plan, SIZES, {}, 1399)


def test_every_problem_is_told_at_once_and_there_are_bounds() -> None:
    with pytest.raises(PlanError) as caught:
        parse("// [LAUNCH] launch k grid() block(1) args(x)\n\n// [LAUNCH] launch k grid(1) block(1) args(q)\n")
    assert [problem.line for problem in caught.value.problems] == [1, 3]
    line = "// [LAUNCH] launch k grid(1) block(1) args(x)\n"
    assert len(parse(16 * line).launches) == 16
    with pytest.raises(PlanError, match="line 17: more than 16 launches"):
        parse(17 * line)
    many = "// [LAUNCH] launch k grid(1) block(1) args({})\n"
    assert len(parse(many.format(", ".join(["x"] * 64))).launches[0].arguments) == 64
    with pytest.raises(PlanError, match="line 1: a list of 65 items; 64 are possible"):
        parse(many.format(", ".join(["x"] * 65)))
    buffers = "".join(f"// [LAUNCH] scratch p{i}: uint8[1]\n" for i in range(17))
    with pytest.raises(PlanError, match="line 17"):
        parse(buffers + line)
    with pytest.raises(PlanError, match="no launch plan"):
        parse("kernel void solve() { }")
    with pytest.raises(PlanError, match="an argument's name"):
        parse(f"// [TUNE] rows in {{1}}\n{line}")


@pytest.mark.parametrize("tag", ["[launch]", "[ LAUNCH ]", "[LAUNCHES]", "<LAUNCH>", "[/LAUNCH]", "[LAUNCH_START]"])
def test_a_misspelt_tag_is_no_silence(tag: str) -> None:
    with pytest.raises(PlanError, match=r"line 1: a misspelt \[LAUNCH\] comment"):
        parse(f"// {tag} launch k grid(1) block(1) args(x)\n")


def test_code_that_speaks_of_launches_is_no_statement() -> None:
    text = '// how to launch this: with care\nint LAUNCH = 3; // [LAUNCH] is below\nprintf("[LAUNCH] x");\n'
    assert len(parse(f"{text}// [LAUNCH] launch k grid(1) block(1) args(x)\r\n").launches) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("TILE in {8, 16}; TILE in {4}", "TILE is there twice"),
        ("TILE in {8, 8}", "has a value twice"),
        ("TILE in {}", "`` is no value of TILE"),
        ("TILE in {8 16}", "`8 16` is no value of TILE"),
        ("TILE in {1.5}", "`1.5` is no value"),
        ("TILE in {99999999999}", "is no value"),
        ("TILE = 8", "`TILE = 8` is no tunable"),
        ("2TILE in {8}", "`2TILE` cannot name a tunable"),
        ("TILE in {8}; where TILE", "`TILE` is no condition"),
        ("TILE in {8}; where TILE < 9 < 10", "is no condition"),
        ("TILE in {8}; where rows < 9", "rows, which is no tunable"),
        ("TILE in {8}; where TILE +  < 9", "ends too early"),
        ("TILE in {8, 16}; where TILE > 8", "`where TILE > 8` does not hold with TILE = 8"),
        ("TILE in {8}; where 1 // (TILE - 8) < 2", "has no value: division by zero"),
        ("", "an empty [TUNE] comment"),
        ("; ".join(f"T{i} in {{1}}" for i in range(17)), "17 tunables"),
        (f"T in {{{', '.join(map(str, range(65)))}}}", "has 65 values"),
        ("T in {1}" + " " * 4100, "characters"),
    ],
)
def test_what_is_wrong_with_tunables_is_said(text: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        tunables.parse(f"\n// [TUNE] {text}\n")
    assert says in str(caught.value)
    assert caught.value.problems[0].mend


def test_the_document_s_example_is_a_plan() -> None:
    document = (Path(__file__).resolve().parents[2] / "docs" / "tasks.md").read_text()
    (example,) = re.findall(r"^```c\n(.*?)^```", document, re.S | re.M)
    parameters = (*PARAMETERS[:3], Parameter(name="cols", role=Role.SIZE, dtype="int64"))
    plan = launchplan.parse(example, parameters, "opencl")
    bound = bind(plan, SIZES, {"GROUP": 64}, 1 << 20)
    assert [launch.kernel for launch in bound.launches] == ["row_sums", "divide"]
    assert bound.launches[1].grid == (-(-7 * 33 // 64), 1, 1)


def test_a_text_without_a_plan_is_host_form_where_there_is_one() -> None:
    plan = "// [LAUNCH] launch k grid(1) block(1) args(x)\n"
    told = {name: (in_device_form(name, "x"), in_device_form(name, plan)) for name in ("cpp", "cuda", "opencl", "no")}
    assert told == {"cpp": (False, False), "cuda": (False, True), "opencl": (True, True), "no": (False, False)}
    with pytest.raises(PlanError):
        in_device_form("cuda", "// [LAUNCHES] launch k")


def test_only_values_that_are_offered_and_fit_together_can_be_chosen() -> None:
    space = tunables.parse(PLAN)
    assert space.choose({}) == {"TILE": 16, "VEC": 1, "DEEP": -1}
    assert space.choose({"TILE": 32, "VEC": 2}) == {"TILE": 32, "VEC": 2, "DEEP": -1}
    with pytest.raises(PlanError, match=r"TILE = 9 is not offered. Choose one of 16, 8, 32"):
        space.choose({"TILE": 9})
    with pytest.raises(PlanError, match=r"where TILE \* VEC <= 64` does not hold with DEEP = -1, TILE = 32, VEC = 4"):
        space.choose({"TILE": 32, "VEC": 4})
