"""Laws of the judge's comparison."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from kfd.tasks.spec import Tolerance  # noqa: E402
from kfd.tasks.targets import TOLERANCES  # noqa: E402
from kfd_worker.judge.compare import compare, poison, poison_left, slack_touched  # noqa: E402

FP32 = TOLERANCES["fp32"]
FLOATS = ("float32", "float64", "float16", "bfloat16")
CLASS = {"float32": "fp32", "float64": "fp64", "float16": "fp16", "bfloat16": "bf16"}


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_right_answer_rounded_to_its_type_passes(dtype: str) -> None:
    want = draw(33, 17)
    result = compare(want.to(getattr(torch, dtype)), want, TOLERANCES[CLASS[dtype]])
    assert result.passed, result
    assert result.worst < 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_single_wrong_element_fails(dtype: str) -> None:
    want = draw(7, 5)
    for index in range(want.numel()):
        got = want.to(getattr(torch, dtype), copy=True)
        got.view(-1)[index] += 1.0
        result = compare(got, want, TOLERANCES[CLASS[dtype]])
        assert not result.passed
        assert f"[{index // 5}, {index % 5}]" in result.detail


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_fails_where_the_answer_is_finite(value: float) -> None:
    want = draw(100)
    got = want.float()
    got[37] = value
    result = compare(got, want, FP32)
    assert not result.passed
    assert "[37]" in result.detail


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_rightly_not_finite_must_be_the_same(value: float) -> None:
    want = draw(100)
    want[3] = value
    assert compare(want.float(), want, FP32).passed
    for other in (0.0, math.nan, math.inf, -math.inf):
        got = want.float()
        got[3] = other
        same = (math.isnan(other) and math.isnan(value)) or other == value
        assert compare(got, want, FP32).passed == same
    got = want.float()
    got[5] += 1
    result = compare(got, want, FP32)
    assert not result.passed
    assert "[5]" in result.detail


def test_what_is_too_large_for_the_output_type_is_infinite_there() -> None:
    want = torch.tensor([1.0, 1e39, -1e39], dtype=torch.float64)
    assert compare(want.float(), want, FP32).passed


def test_zeros_have_to_be_zeros() -> None:
    want = torch.zeros(5, dtype=torch.float64)
    assert compare(torch.zeros(5), want, FP32).passed
    assert not compare(torch.full((5,), 1e-30), want, FP32).passed


@given(st.floats(1e-7, 1e-1), st.floats(0.01, 0.99))
def test_tightening_a_tolerance_only_turns_pass_into_fail(noise: float, factor: float) -> None:
    want = draw(64)
    got = (want * (1 + noise * draw(64, seed=1))).float()
    loose = Tolerance(error_class="x", tau=1e-3, a=1e-3, b=1e-3)
    tight = Tolerance(error_class="x", tau=1e-3 * factor, a=1e-3 * factor, b=1e-3 * factor)
    if compare(got, want, tight).passed:
        assert compare(got, want, loose).passed


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_integers_are_exact(dtype: str) -> None:
    want = torch.arange(2 if dtype == "bool" else 100).to(getattr(torch, dtype))
    assert compare(want.clone(), want, FP32).passed
    got = want.clone()
    got.view(torch.uint8)[0] ^= 1
    assert not compare(got, want, FP32).passed


def test_a_bool_that_is_neither_true_nor_false_fails() -> None:
    want = torch.tensor([True, True])
    got = want.clone()
    got.view(torch.uint8)[1] = 2
    assert not compare(got, want, FP32).passed


def test_shapes_are_not_broadcast() -> None:
    assert not compare(torch.ones(4, 1), torch.ones(4, 4, dtype=torch.float64), FP32).passed


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64"])
def test_poison_differs_from_call_to_call_is_found_and_fails(dtype: str) -> None:
    tensor = torch.zeros(10, dtype=getattr(torch, dtype))
    bits = {poison(tensor, dice) for dice in (1, 2**40 + 77777)}
    assert len(bits) == 2 or dtype in ("bfloat16", "float16")
    last = poison(tensor, 5)
    assert poison_left(tensor, last) == 10
    tensor[:9] = 0
    assert poison_left(tensor, last) == 1
    want = torch.zeros(10, dtype=torch.float64 if dtype in FLOATS else tensor.dtype)
    assert not compare(tensor, want, FP32).passed


def test_bytes_beside_an_output_are_watched() -> None:
    before, after = torch.full((5,), 7, dtype=torch.uint8), torch.full((3,), 7, dtype=torch.uint8)
    assert slack_touched((before, after), 7) == ""
    after[0] = 0
    assert slack_touched((before, after), 7) == "after"
    before[4] = 0
    assert slack_touched((before, after), 7) == "before"
