"""Points of a template: what the core sees of the declaration, and the source with a point's values in it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.core.commands import DraftRequest
from kfd.core.events import DraftArrived, DraftRejected
from kfd.core.search.operators import Operator
from kfd.core.search.tuning import Declared, TunePolicy
from kfd.daemon.tuning import NOT_TUNABLE, declared, point
from kfd.prompting.reading import drafted
from kfd.tasks.baking import baked
from kfd.tasks.tunables import PlanError, parse
from kfd.testing.simulation import sim_spec
from tests.unit.test_prompting_render import SPEC, kernel

TEXT = """// [TUNE] TILE in {8, 16, 32}; VEC in {1, 2, 4}
// [TUNE] SHIFT in {-1, 0}; where TILE * VEC <= 64 and TILE // (SHIFT + 1) > 4
#ifndef TILE
#define TILE 8
#endif
int x = TILE;
"""
BODY = TEXT.replace(" and TILE // (SHIFT + 1) > 4", "")


def request_of(values: dict[str, int], toolchain: str = "cpp") -> DraftRequest:
    return DraftRequest(
        campaign=sim_spec("p", toolchain=toolchain),
        candidate=f"{sim_spec('p').id}-7",  # type: ignore[arg-type]
        ordinal=7,
        operator=Operator.TUNE,
        parent=f"{sim_spec('p').id}-3",  # type: ignore[arg-type]
        parent_source="s",
        nth=0,
        inspirations=(),
        best=None,
        algorithm=0,
        hints=(),
        values=tuple(values.items()),
        model="",
        model_choice=0.5,
    )


@given(tile=st.sampled_from([8, 16, 32]), vec=st.sampled_from([1, 2, 4]), shift=st.sampled_from([-1, 0]))
def test_the_core_allows_what_the_builder_takes_and_nothing_else(tile: int, vec: int, shift: int) -> None:
    text = "// [TUNE] TILE in {8, 16, 32}; VEC in {1, 2, 4}; SHIFT in {0, -1}; "
    text += "where TILE * VEC <= 64 and TILE // (SHIFT + 1) > 4 and VEC != 2"
    space = declared(kernel(f"{text}\n"))
    assert space is not None
    values = {"TILE": tile, "VEC": vec, "SHIFT": shift}
    at = tuple(choices.index(values[name]) for name, choices in space.tunables)
    try:
        parse(text).choose(values)
        is_taken = True
    except PlanError:
        is_taken = False
    assert space.space().allows(at) is is_taken


@pytest.mark.parametrize("body", ["int x;\n", "// [TUNE] TILE in {}\n", "// [TUNE] TILE is 8\n", TEXT])
def test_a_kernel_without_readable_tunables_declares_nothing(body: str) -> None:
    assert declared(kernel(body)) is None


@given(st.data())
def test_the_baked_values_are_the_defaults_and_nothing_else_changes(data: st.DataObject) -> None:
    values = {"TILE": data.draw(st.sampled_from([8, 16])), "VEC": data.draw(st.sampled_from([1, 2, 4]))}
    values["SHIFT"] = data.draw(st.sampled_from([-1, 0]))
    once = baked(BODY, values, macros=True)
    space = parse(once)
    assert {one.name: one.default for one in space.tunables} == values
    assert [str(one) for one in space.conditions] == [str(one) for one in parse(BODY).conditions]
    assert {one.name: set(one.values) for one in space.tunables} == {
        one.name: set(one.values) for one in parse(BODY).tunables
    }
    others = [line for line in once.split("\n") if "[TUNE" not in line]
    assert others == [line for line in BODY.split("\n") if "[TUNE" not in line]
    # A second baking leaves nothing of the first: the macro that counts is the first one of a name.
    again = baked(once, {"TILE": 8, "VEC": 1, "SHIFT": -1}, macros=True)
    assert {one.name: one.default for one in parse(again).tunables} == {"TILE": 8, "VEC": 1, "SHIFT": -1}
    assert [line for line in again.split("\n") if "[TUNED]" in line] == [
        "#define TILE 8  // [TUNED]",
        "#define VEC 1  // [TUNED]",
        "#define SHIFT (-1)  // [TUNED]",
    ]
    assert "[TUNED]" not in baked(again, {}, macros=False)


def test_macros_are_defined_before_the_code_asks_for_them() -> None:
    lines = baked(BODY, {"TILE": 16, "VEC": 2}, macros=True).split("\n")
    assert lines[0] == "// [TUNE] TILE in {16, 8, 32}; VEC in {2, 1, 4}"
    assert lines[1:3] == ["#define TILE 16  // [TUNED]", "#define VEC 2  // [TUNED]"]
    assert lines[4] == "#define SHIFT (-1)  // [TUNED]"


@pytest.mark.parametrize("values", [{"TILE": 64}, {"TILE": 32, "VEC": 4}])
def test_values_that_are_not_offered_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(PlanError):
        baked(BODY, values, macros=False)
    made = point(request_of(values), kernel(BODY).text, SPEC)
    assert isinstance(made, DraftRejected)
    assert made.reason == NOT_TUNABLE


@pytest.mark.parametrize(("toolchain", "macros"), [("cpp", True), ("opencl", False), ("triton", False)])
def test_a_point_is_its_template_with_other_defaults(toolchain: str, macros: bool) -> None:
    template = kernel(BODY)
    texts, normals = set(), set()
    for tile, vec in itertools.product((8, 16), (1, 2)):
        made = point(request_of({"TILE": tile, "VEC": vec, "SHIFT": 0}, toolchain), template.text, SPEC)
        assert isinstance(made, DraftArrived)
        text = made.drafted.kernel_text
        assert ("[TUNED]" in text) is macros
        assert {one.name: one.default for one in parse(text).tunables} == {"TILE": tile, "VEC": vec, "SHIFT": 0}
        assert (made.model, made.input_tokens, made.drafted.space) == ("", 0, None)
        texts.add(made.drafted.source)
        normals.add(made.drafted.normal)
    assert len(texts) == len(normals) == 4
    assert drafted(template, toolchain).normal not in normals


def test_a_source_that_is_not_the_tasks_is_no_template() -> None:
    made = point(request_of({"TILE": 8}), "another file", SPEC)
    assert isinstance(made, DraftRejected)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tunables": ()},
        {"tunables": (("A", ()),)},
        {"tunables": (("A", (1,)),), "conditions": (("A", "=", "1"),)},
    ],
)
def test_a_damaged_declaration_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"a declared space|a condition"):
        Declared(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"budget": 5000}, {"spread": 0}, {"exhaustive": -1}])
def test_a_policy_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="sweep"):
        replace(TunePolicy(), **wrong)
