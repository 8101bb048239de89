"""Listed instantiations of ``forward_templated``: which space they make, and what choosing a point changes."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.core.dice import Dice
from kfd.core.events import DraftArrived, DraftRejected
from kfd.daemon.tuning import declared, point
from kfd.tasks.templated import MAX_POINTS, baked, parse
from kfd.tasks.tunables import PlanError
from tests.unit.test_prompting_render import SPEC, kernel
from tests.unit.test_tuning_points import request_of

# The paper's published example lists three block shapes.
TEXT = """#include <cstdint>
template <int ROWS, int COLS>
static int forward_templated(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * ROWS + COLS;
    return 0;
}
// forward_templated<64, 64> was too slow.
template int forward_templated<32, 8>(const float *, float *, int64_t);
template int forward_templated<8, 32>(const float *, float *, int64_t);
extern "C" int solve(const float *x, float *y, int64_t n) {
    const char *said = "forward_templated<1, 1>";
    return forward_templated< 16,16 >(x, y, n) + (said == nullptr);
}
"""


def test_what_is_listed_is_the_space_and_the_call_comes_first() -> None:
    found = parse(TEXT)
    assert found is not None
    assert found.names == ("ROWS", "COLS")
    assert found.points == ((16, 16), (32, 8), (8, 32))
    assert found.values == ((16, 32, 8), (16, 8, 32))


def test_a_chosen_point_changes_the_call_and_nothing_else() -> None:
    assert baked(TEXT, {"ROWS": 32, "COLS": 8}) == TEXT.replace("< 16,16 >", "<32, 8>")
    again = parse(baked(TEXT, {"ROWS": 32, "COLS": 8}))
    assert again is not None
    assert again.points == ((32, 8), (8, 32)), "what was called and never listed is gone"


@pytest.mark.parametrize("values", [{"ROWS": 64, "COLS": 64}, {"ROWS": 16, "COLS": 8}, {"ROWS": 16}, {"OTHER": 1}])
def test_a_point_that_is_not_listed_is_an_error(values: dict[str, int]) -> None:
    with pytest.raises(PlanError, match="not instantiated"):
        baked(TEXT, values)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("template <int ROWS, int COLS>", "template <class T>"),
        TEXT.replace("< 16,16 >", "<ROWS, 16>"),
        TEXT.replace("return forward", "if (n > 9) return forward_templated<32, 8>(x, y, n);\n    return forward"),
        TEXT.replace("< 16,16 >", "<16>"),
        "\n".join(line for line in TEXT.split("\n") if not line.startswith("template int")),
        TEXT.replace("forward_templated", "forward"),
        TEXT.replace("return forward_templated< 16,16 >(x, y, n)", "return 0"),
        TEXT.replace(
            "extern",
            "".join(f"template int forward_templated<{n}, 1>(const float *, float *, int64_t);\n" for n in range(70))
            + "extern",
        ),
    ],
)
def test_what_is_no_list_is_no_space(text: str) -> None:
    assert parse(text) is None


def test_booleans_count_as_one_and_nought() -> None:
    found = parse(TEXT.replace("int COLS", "bool COLS").replace("32, 8>", "32, true>").replace("8, 32>", "8, false>"))
    assert found is not None
    assert found.points == ((16, 16), (32, 1), (8, 0))


@given(st.text(alphabet="template<>(){};,int forward_templated 0123456789\n\"'/*", max_size=300))
def test_no_text_is_a_fall(text: str) -> None:
    found = parse(f"template <int A> int forward_templated(int);{text}")
    assert found is None or 2 <= len(found.points) <= MAX_POINTS


def test_a_hostile_text_costs_little() -> None:
    assert parse("template <int A" * 60_000 + "forward_templated") is None
    assert parse("forward_templated<" * 60_000) is None


@pytest.mark.parametrize("unit", ["/* ", '"\\', "'\\", "// ", '"', "/*/"])
def test_what_is_never_closed_costs_little(unit: str) -> None:
    text = "forward_templated " + unit * (400_000 // len(unit))
    start = time.process_time()
    assert parse(text) is None
    assert time.process_time() - start < 2


def test_a_campaign_sees_listed_points_only() -> None:
    space = declared(kernel(TEXT))
    assert space is not None
    points = space.space().points(Dice(1), 1)
    assert {tuple(space.space().chosen(one).values()) for one in points} == {(16, 16), (32, 8), (8, 32)}


def test_a_point_becomes_a_source_and_one_that_is_not_listed_a_reason() -> None:
    made = point(request_of({"ROWS": 8, "COLS": 32}), kernel(TEXT).text, SPEC)
    assert isinstance(made, DraftArrived)
    assert "forward_templated<8, 32>(x, y, n)" in made.drafted.kernel_text
    refused = point(request_of({"ROWS": 9, "COLS": 32}), kernel(TEXT).text, SPEC)
    assert isinstance(refused, DraftRejected)
    assert "not instantiated" in refused.detail


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_every_point_is_code(tmp_path: Path) -> None:
    (tmp_path / "k.cpp").write_text(baked(TEXT, {"ROWS": 8, "COLS": 32}))
    subprocess.run(["g++", "-fsyntax-only", "k.cpp"], cwd=tmp_path, check=True, timeout=60)
