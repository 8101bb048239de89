"""A launch plan in numbers: sizes and tunables put in, every bound checked.

What leaves ``bind`` is small and positive, so that a driver is never asked for what it cannot do because an
expression was wrong. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfd.base.expr import ExprError, evaluate
from kfd.tasks.launchplan import ArgumentKind, Launch, LaunchPlan, PlanArgument
from kfd.tasks.targets import DTYPE_BYTES
from kfd.tasks.tunables import PlanError, PlanProblem

__all__ = ["BoundLaunch", "BoundPlan", "bind"]

_MAX_BLOCK = 1024
"""Work-items of one group: what every device allows."""
_MAX_BLOCK_EACH = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65535, 65535)
"""Groups in each direction: CUDA's bounds, the narrowest."""
_MAX_ITEMS = 1 << 40
"""Work-items of one launch: hours of a device's time."""
_MAX_SHARED = 227 << 10
"""Local memory of one group in bytes: the widest that a device offers (sm_90)."""
_MAX_CONSTANT = (1 << 31) - 1
_WARPS = (1, 2, 4, 8, 16, 32)
_STAGES = range(1, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundLaunch:
    """A launch in numbers. Arguments: ("arg", k), ("scratch", k), ("local", bytes) or ("scalar", dtype, value)."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[tuple[str | int, ...], ...]
    warps: int = 0
    stages: int = 0
    constants: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPlan:
    """A plan for one case: bytes of each scratch buffer, launches in numbers."""

    scratch: tuple[int, ...]
    launches: tuple[BoundLaunch, ...]

    def order(self) -> dict[str, Any]:
        """The ``plan`` of a child's ``map`` order."""
        return {"scratch": list(self.scratch), "launches": [_order(launch) for launch in self.launches]}


def _order(launch: BoundLaunch) -> dict[str, Any]:
    order: dict[str, Any] = {
        "kernel": launch.kernel,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared": launch.shared,
        "args": [list(argument) for argument in launch.arguments],
    }
    if launch.warps:
        order |= {"warps": launch.warps, "stages": launch.stages, "constants": dict(launch.constants)}
    return order


def bind(plan: LaunchPlan, sizes: Mapping[str, int], chosen: Mapping[str, int], memory_bytes: int) -> BoundPlan:
    """The plan for one case.

    ``sizes`` are the case's numbers, ``chosen`` tunables that are not at their defaults, ``memory_bytes`` bounds all
    scratch buffers together. Raises PlanError with line and mend for what has no value or leaves its bounds.
    """
    values = {**sizes, **plan.space.choose(chosen)}
    scratch: list[int] = []
    for buffer in plan.scratch:
        extents = [_value(buffer.line, extent, values, 1, memory_bytes, "a dimension") for extent in buffer.shape]
        scratch.append(math.prod(extents) * DTYPE_BYTES[buffer.dtype])
        if sum(scratch) > memory_bytes:
            what = f"scratch buffers need {sum(scratch) >> 20} MiB; {memory_bytes >> 20} MiB are allowed"
            raise _wrong(buffer.line, what, "Use smaller buffers.")
    return BoundPlan(scratch=tuple(scratch), launches=tuple(_launch(launch, values) for launch in plan.launches))


def _wrong(line: int, text: str, mend: str) -> PlanError:
    return PlanError([PlanProblem(line=line, text=text, mend=mend)])


def _value(line: int, text: str, values: Mapping[str, int], low: int, high: int, what: str) -> int:
    """An expression's value between two bounds. Raises PlanError."""
    try:
        value = evaluate(text, values)
    except ExprError as error:
        raise _wrong(line, f"`{text}`: {error}", "Change the expression or the sizes.") from None
    if not low <= value <= high:
        raise _wrong(line, f"{what} `{text}` is {value}", f"It must lie between {low} and {high}.")
    return value


def _extents(launch: Launch, word: str, values: Mapping[str, int], bounds: tuple[int, ...]) -> tuple[int, int, int]:
    found = [
        _value(launch.line, text, values, 1, bound, f"{word} of {launch.kernel}")
        for text, bound in zip(getattr(launch, word), bounds, strict=False)
    ]
    x, y, z, *_ = (*found, 1, 1, 1)
    return x, y, z


def _launch(launch: Launch, values: Mapping[str, int]) -> BoundLaunch:
    grid = _extents(launch, "grid", values, _MAX_GRID)
    block = _extents(launch, "block", values, _MAX_BLOCK_EACH)
    if math.prod(block) > _MAX_BLOCK:
        what = f"block of {launch.kernel} has {math.prod(block)} work-items"
        raise _wrong(launch.line, what, f"A group has at most {_MAX_BLOCK}.")
    if math.prod(grid) * math.prod(block) > _MAX_ITEMS:
        raise _wrong(launch.line, f"{launch.kernel} starts more than {_MAX_ITEMS} work-items", "Start fewer.")
    shared = _value(launch.line, launch.shared, values, 0, _MAX_SHARED, "shared")
    positional = tuple(_argument(launch, one, values) for one in launch.arguments if not one.name)
    local = sum(int(one[1]) for one in positional if one[0] == ArgumentKind.LOCAL)
    if local > _MAX_SHARED:
        raise _wrong(launch.line, f"{launch.kernel} has {local} bytes of local memory", f"Use at most {_MAX_SHARED}.")
    warps = _choice(launch, launch.warps, values, _WARPS, "warps")
    return BoundLaunch(
        kernel=launch.kernel,
        grid=grid,
        block=(32 * warps, 1, 1) if warps else block,
        shared=shared,
        arguments=positional,
        warps=warps,
        stages=_choice(launch, launch.stages, values, _STAGES, "stages"),
        constants=tuple(
            (one.name, _value(launch.line, one.expression, values, -_MAX_CONSTANT, _MAX_CONSTANT, one.name))
            for one in launch.arguments
            if one.name
        ),
    )


def _choice(launch: Launch, text: str, values: Mapping[str, int], allowed: tuple[int, ...] | range, what: str) -> int:
    """A number out of a few; 0 when the toolchain has no such clause."""
    if not text:
        return 0
    value = _value(launch.line, text, values, allowed[0], allowed[-1], what)
    if value not in allowed:
        raise _wrong(launch.line, f"{what} is {value}", f"Choose one of {', '.join(map(str, allowed))}.")
    return value


def _argument(launch: Launch, argument: PlanArgument, values: Mapping[str, int]) -> tuple[str | int, ...]:
    if argument.kind in (ArgumentKind.PARAMETER, ArgumentKind.SCRATCH):
        return (argument.kind.value, argument.index)
    if argument.kind is ArgumentKind.LOCAL:
        return (argument.kind.value, _value(launch.line, argument.expression, values, 1, _MAX_SHARED, "local"))
    bits = 31 if argument.dtype == "int32" else 63
    value = _value(launch.line, argument.expression, values, -(2**bits), 2**bits - 1, f"an {argument.dtype}")
    return (argument.kind.value, argument.dtype, value)
