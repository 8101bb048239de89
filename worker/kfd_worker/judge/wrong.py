"""Answers that are wrong and cost nothing. What a comparison takes of these is no comparison.

An answer is tried on every draw but those it was made from: a constant that fits one draw proves nothing until it
fits another. What is right by necessity is left out: half of one row, the mean along an axis of one element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Wrong", "wrong_answers"]

_Draws = Sequence[tuple[dict[str, Any], list[torch.Tensor]]]
"""Inputs and right outputs (in double precision) of each of at least three draws."""

_Made = Callable[[int], torch.Tensor | None]
"""An answer for one draw; None: this draw says nothing."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """One wrong answer for one output."""

    name: str
    output: int
    text: str
    made: _Made
    draws: range

    def answers(self) -> Iterator[tuple[int, torch.Tensor]]:
        """The answer for each draw that can tell."""
        for number in self.draws:
            made = self.made(number)
            if made is not None:
                yield number, made


def wrong_answers(names: Sequence[str], dtypes: Sequence[torch.dtype], draws: _Draws) -> Iterator[Wrong]:
    """Every wrong answer for every output, as it would be stored. At least three draws are needed."""
    for output, (name, dtype) in enumerate(zip(names, dtypes, strict=True)):
        wants = [right[output] for _, right in draws]
        if not wants[0].numel():
            continue
        for what, text, made, tried in (
            *_constants(wants),
            *_inputs(draws, wants),
            *_others(wants),
            *_means(wants),
        ):
            yield Wrong(f"{name}: {what}", output, text.format(name), _rounded(made, dtype), tried)


def _rounded(made: _Made, dtype: torch.dtype) -> _Made:
    def rounded(number: int) -> torch.Tensor | None:
        answer = made(number)
        return None if answer is None else answer.to(dtype)

    return rounded


_Kind = tuple[str, str, _Made, range]


def _constants(wants: Sequence[torch.Tensor]) -> Iterator[_Kind]:
    everywhere, later = range(len(wants)), range(1, len(wants))
    yield "zeros", "zeros for {}", lambda number: torch.zeros_like(wants[number]), everywhere
    first = wants[0].to(torch.float64).flatten()
    low, high = float(first.min()), float(first.max())
    best = {"mean": float(first.mean()), "middle": (low + high) / 2, "median": float(first.median())}
    for name, value in best.items():
        if math.isfinite(value):
            text = f"the constant {value:.6g} for {{}}"
            yield f"constant ({name})", text, lambda number, v=value: _full(wants[number], v), later  # type: ignore[misc]


def _full(like: torch.Tensor, value: float) -> torch.Tensor:
    if like.dtype.is_floating_point:
        return torch.full_like(like, value)
    return torch.full(like.shape, value, dtype=torch.float64).round().to(like.dtype)


def _inputs(draws: _Draws, wants: Sequence[torch.Tensor]) -> Iterator[_Kind]:
    for name, value in draws[0][0].items():
        if isinstance(value, torch.Tensor) and value.numel() == wants[0].numel():
            yield (
                f"input {name}",
                f"the input {name} itself for {{}}",
                lambda number, n=name: draws[number][0][n].reshape(wants[number].shape),  # type: ignore[misc]
                range(len(draws)),
            )


def _others(wants: Sequence[torch.Tensor]) -> Iterator[_Kind]:
    everywhere = range(len(wants))

    def other(number: int) -> torch.Tensor:
        return wants[(number + 1) % len(wants)]

    def half(number: int) -> torch.Tensor:
        mixed, stale = wants[number].clone(), other(number)
        # Rows where there are several, else elements.
        rows, old = (one if one.dim() and one.shape[0] > 1 else one.reshape(-1) for one in (mixed, stale))
        rows[: rows.shape[0] // 2] = old[: rows.shape[0] // 2]
        return mixed

    yield "another draw", "the answer to other inputs for {}", other, everywhere
    if wants[0].numel() > 1:
        yield "half stale", "half of the rows of {} left from other inputs", half, everywhere


def _means(wants: Sequence[torch.Tensor]) -> Iterator[_Kind]:
    for axis, extent in enumerate(wants[0].shape):
        if extent > 1 and wants[0].dtype.is_floating_point:
            yield (
                f"mean along axis {axis}",
                f"the mean along axis {axis} everywhere for {{}}",
                lambda number, a=axis: wants[number].mean(dim=a, keepdim=True).expand(wants[number].shape).clone(),  # type: ignore[misc]
                range(len(wants)),
            )
