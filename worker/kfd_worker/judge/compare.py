"""Comparing a candidate's bytes with what is right (evaluation notes, 5.3). Fails closed.

All functions take tensors and give numbers; a bound that cannot be computed is a failure, never a pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from kfd.tasks.spec import Tolerance

__all__ = ["Difference", "compare", "poison", "poison_left", "slack_touched", "within"]

_PIECE = 1 << 17
"""Elements that are compared at a time: a few buffers of so many stay in a core's own cache."""
_PLAIN = 1e-20
"""Sums of squares below this or above its inverse are too close to what float32 cannot hold."""

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
    return _quickly(got, want, tolerance, slack) or _thoroughly(got, want, tolerance, slack)


def within(got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance, *, slack: float = 1.0) -> bool:
    """Whether ``compare`` would certainly pass, every element looked at once, piece by piece in the cache.

    False only means that ``compare`` must be asked: what is not plain finite numbers of plain size, what is no
    float, and what is wrong. |c - r| <= a rms + b |r| everywhere is max(|c - r| - b |r|) <= a rms.
    """
    if got.shape != want.shape or not (got.dtype.is_floating_point and want.dtype.is_floating_point):
        return False
    sums = _sums(got, want)
    if sums is None or not sums.relative <= tolerance.tau * slack:
        return False
    if sums.greatest <= tolerance.a * slack * sums.rms:
        return True
    beyond = max(float((c - r).abs_().sub_(r.abs(), alpha=tolerance.b * slack).max()) for c, r in _pieces(got, want))
    return beyond <= tolerance.a * slack * sums.rms


@dataclass(frozen=True, slots=True)
class _Sums:
    relative: float
    rms: float
    greatest: float
    """max |c - r|."""


def _pieces(got: torch.Tensor, want: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    wide = torch.float64 if torch.float64 in (want.dtype, got.dtype) else torch.float32
    flat_c, flat_r = got.reshape(-1), want.reshape(-1)
    for at in range(0, flat_c.numel(), _PIECE):
        yield flat_c[at : at + _PIECE].to(wide), flat_r[at : at + _PIECE].to(wide)


def _sums(got: torch.Tensor, want: torch.Tensor) -> _Sums | None:
    """None when the sums are not plain finite numbers."""
    distance2 = norm2 = 0.0
    greatest = 0.0
    for c, r in _pieces(got, want):
        error = c - r
        distance2 += float(error.dot(error))
        norm2 += float(r.dot(r))
        low, high = error.aminmax()
        greatest = max(greatest, -float(low), float(high))
    # A NaN or an infinity anywhere is in the sums, whatever max makes of it.
    if not (math.isfinite(distance2) and _PLAIN < norm2 < 1 / _PLAIN):
        return None
    return _Sums(math.sqrt(distance2 / norm2), math.sqrt(norm2 / got.numel()), greatest)


def _quickly(got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance, slack: float) -> Difference | None:
    """The same comparison, every element of it, piece by piece in the cache. None unless it passes.

    What does not pass, or is not plain finite numbers of plain size, is for ``_thoroughly`` to judge.
    """
    sums = _sums(got, want)
    if sums is None or not sums.relative <= tolerance.tau * slack:
        return None
    worst = 0.0
    for c, r in _pieces(got, want) if sums.greatest else ():
        error = (c - r).abs_()
        bound = r.abs().mul_(tolerance.b * slack).add_(tolerance.a * slack * sums.rms)
        ratio = float(error.div_(bound).max())
        # 0/0 where there is no bound is a NaN, and for the thorough comparison to judge.
        if not ratio <= 1.0:
            return None
        worst = max(worst, ratio)
    return Difference(True, sums.relative, worst)


def _thoroughly(got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance, slack: float) -> Difference:
    # In double precision, so that neither a square of 1e-30 nor one of 1e30 is lost.
    wide = torch.float64
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
    ratio = torch.where(error == 0.0, error, error / bound)
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
