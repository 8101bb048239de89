"""Shape expressions: Python's integer arithmetic, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.base.expr import MAX_LENGTH, ExprError, evaluate, names

SIZES = {"rows": 7, "cols": 12, "n": 100}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["rows", "cols", "n", "0", "1", "3", "12"]))
    left, right = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    kind = draw(st.sampled_from(["+", "-", "*", "//", "%", "min", "max", "neg"]))
    if kind in ("min", "max"):
        return f"{kind}({left}, {right})"
    return f"-({left})" if kind == "neg" else f"({left}) {kind} {right}"


@given(expressions())
def test_the_value_is_what_python_says(text: str) -> None:
    if len(text) > MAX_LENGTH:
        with pytest.raises(ExprError):
            evaluate(text, SIZES)
        return
    try:
        expected = eval(text, {"__builtins__": {}, "min": min, "max": max}, SIZES)  # noqa: S307 - the oracle
    except ZeroDivisionError:
        with pytest.raises(ExprError, match="zero"):
            evaluate(text, SIZES)
    else:
        assert evaluate(text, SIZES) == expected


@given(st.text(max_size=250))
def test_any_text_is_a_value_or_an_expr_error(text: str) -> None:
    try:
        value = evaluate(text, SIZES)
    except ExprError:
        return
    assert isinstance(value, int)
    assert names(text) <= set(SIZES)


@pytest.mark.parametrize(
    "text",
    ["", " ", "rows cols", "rows +", "(rows", "rows)", "f(rows)", "rows.x", "rows[0]", "1.5", "rows ** 2", "x", "7 / 2",
     "1 // 0", "rows % (cols - 12)", "9" * 30, "n * " * 40 + "n", "(" * 40 + "1" + ")" * 40, "min()", "lambda: 1",
     "max(" + ",".join("1" * 20) + ")", "4611686018427387904 * 2", "rows\nand", "٣"],
)  # fmt: skip
def test_what_is_not_a_small_integer_expression_is_refused(text: str) -> None:
    with pytest.raises(ExprError):
        evaluate(text, SIZES)


def test_slash_divides_exactly_or_not_at_all() -> None:
    assert evaluate("cols / 3", SIZES) == 4
    with pytest.raises(ExprError, match="remainder"):
        evaluate("cols / 5", SIZES)


def test_names_are_those_that_a_value_needs() -> None:
    assert names("max(rows, 2) * -(cols % n)") == {"rows", "cols", "n"}
