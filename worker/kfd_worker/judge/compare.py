"""Comparing a candidate's bytes with what is right (evaluation notes, 5.3). Fails closed.

All functions take tensors and give numbers; a bound that cannot be computed is a failure, never a pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from kfd.tasks.spec import Tolerance

__all__ = ["Difference", "compare", "poison", "poison_left", "slack_touched"]

_INTEGERS = {4: torch.int32, 8: torch.int64, 2: torch.int16, 1: torch.uint8}


@dataclass(frozen=True, slots=True)
class Difference:
    """How far an output is from what it should be."""

    passed: bool
    relative_l2: float
    worst: float
    """Largest error over its bound; at most 1 passes."""
    detail: str = ""


def compare(got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance, *, slack: float = 1.0) -> Difference:
    """Compare an output with the oracle's. ``slack`` widens all bounds (2: against a rounded oracle)."""
    if got.shape != want.shape:
        return Difference(False, math.inf, math.inf, f"shape {tuple(got.shape)}, expected {tuple(want.shape)}")
    if not got.dtype.is_floating_point:
        return _compare_exact(got, want)
    return _compare_floating(got, want, tolerance, slack)


def _compare_exact(got: torch.Tensor, want: torch.Tensor) -> Difference:
    if want.dtype.is_floating_point:
        return Difference(False, math.inf, math.inf, "the reference gives floating numbers for an integer output")
    # As bytes, so that a bool that is neither 0 nor 1 differs from both.
    left = got.view(torch.uint8) if got.dtype is torch.bool else got
    right = want.to(got.dtype).view(torch.uint8) if got.dtype is torch.bool else want.to(got.dtype)
    wrong = left != right
    count = int(wrong.sum())
    if not count:
        return Difference(True, 0.0, 0.0)
    index = int(wrong.flatten().nonzero()[0])
    return Difference(False, math.inf, math.inf, f"{count} of {got.numel()} values differ; {_place(got, want, index)}")


def _compare_floating(got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance, slack: float) -> Difference:
    wide = torch.float64 if torch.float64 in (want.dtype, got.dtype) else torch.float32
    c, r = got.to(wide), want.to(wide)
    error = (c - r).abs_()
    distance, norm = float(torch.linalg.vector_norm(error)), float(torch.linalg.vector_norm(r))
    finite: torch.Tensor | None = None
    if not (math.isfinite(distance) and math.isfinite(norm)):
        # Something is not finite, in the output or rightly so: look at each place.
        # What is right is what is right after rounding to the output's type: 1e39 is infinite in float32.
        rounded = want.to(got.dtype)
        finite = torch.isfinite(rounded)
        wrong = _not_finite_alike(got, rounded, finite)
        if wrong:
            return Difference(False, math.inf, math.inf, wrong)
        c, r = got[finite].double(), want[finite].double()
        error = (c - r).abs_()
        distance, norm = float(torch.linalg.vector_norm(error)), float(torch.linalg.vector_norm(r))
    if not r.numel():
        return Difference(True, 0.0, 0.0)
    relative = distance / norm if norm > 0 else (0.0 if distance == 0 else math.inf)
    bound = r.abs().mul_(tolerance.b * slack).add_(tolerance.a * slack * norm / math.sqrt(r.numel()))
    # 0/0 is no error at all; x/0 is infinite and fails; a NaN fails every comparison below.
    ratio = error.div_(bound) if norm > 0 else torch.where(error > 0, math.inf, 0.0)
    worst = float(ratio.max())
    if relative <= tolerance.tau * slack and worst <= 1.0:
        return Difference(True, relative, worst)
    index = int(torch.nan_to_num(ratio, nan=math.inf).flatten().argmax())
    if finite is not None:
        index = int(finite.flatten().nonzero()[index])
    text = f"relative L2 error {relative:.3g} (allowed {tolerance.tau * slack:.3g}), "
    text += f"worst element {worst:.3g} times its bound"
    return Difference(False, relative, worst, f"{text}; {_place(got, want, index)}")


def _not_finite_alike(got: torch.Tensor, rounded: torch.Tensor, finite: torch.Tensor) -> str:
    """Where the output is not finite and should be, or the other way round; empty when nowhere."""
    different = torch.isfinite(got) != finite
    strange = ~finite
    # Infinities must have the right sign, and a NaN is not an infinity.
    left, right = (torch.nan_to_num(one, nan=2.0, posinf=1.0, neginf=-1.0) for one in (got, rounded))
    different |= strange & (left != right)
    count = int(different.sum())
    if not count:
        return ""
    index = int(different.flatten().to(torch.uint8).argmax())
    return f"{count} values are not finite where they should be, or finite where not; {_place(got, rounded, index)}"


def _place(got: torch.Tensor, want: torch.Tensor, index: int) -> str:
    at: list[int] = []
    rest = index
    for extent in reversed(got.shape):
        at.append(rest % extent)
        rest //= extent
    where = ", ".join(map(str, reversed(at)))
    return f"at [{where}] it is {got.flatten()[index].item():.9g}, expected {want.flatten()[index].item():.9g}"


def poison(tensor: torch.Tensor, dice: int) -> int:
    """Fill an output with a value that no honest kernel leaves, different for each call; returns its bits.

    Floats get a NaN with a payload from ``dice``, integers a large odd number, bytes an odd byte.
    """
    size = tensor.dtype.itemsize
    if tensor.dtype.is_floating_point:
        exponent = {
            torch.float32: 0x7F800000,
            torch.float64: 0x7FF0 << 48,
            torch.float16: 0x7C00,
            torch.bfloat16: 0x7F80,
        }[tensor.dtype]
        mantissa = {torch.float32: 23, torch.float64: 52, torch.float16: 10, torch.bfloat16: 7}[tensor.dtype]
        bits = exponent | (1 << (mantissa - 1)) | (dice & ((1 << (mantissa - 1)) - 1)) | 1
    else:
        bits = (dice & ((1 << (8 * size - 2)) - 1)) | (1 << (8 * size - 2)) | 1
    tensor.view(_INTEGERS[size]).fill_(bits)
    return bits


def poison_left(tensor: torch.Tensor, bits: int) -> int:
    """Elements that still hold the poison. Bytes are left to the comparison: every value of theirs is lawful."""
    if tensor.dtype.itemsize == 1:
        return 0
    return int((tensor.view(_INTEGERS[tensor.dtype.itemsize]) == bits).sum())


def slack_touched(slack: tuple[torch.Tensor, torch.Tensor], pattern: int) -> str:
    """``before`` or ``after`` when bytes beside an output were written, else empty."""
    for name, part in zip(("before", "after"), slack, strict=True):
        if part.numel() and not bool((part == pattern).all()):
            return name
    return ""
