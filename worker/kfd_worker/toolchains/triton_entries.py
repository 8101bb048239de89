"""Triton's kernels between launch plan, payload and launch. Pure and bounded: a payload is a candidate's word.

A payload is one line of JSON, ``{"entries": [...]}`` as ``harness/triton_compile.py`` writes it, and the cubins behind
each other. A kernel is compiled once for each set of numbers that the plan gives it, and named by them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kfd.tasks.launchbind import BoundLaunch, BoundPlan
from kfd.tasks.launchplan import LaunchPlan
from kfd.tasks.spec import Parameter, Role
from kfd_worker.toolchains.elf import ElfError
from kfd_worker.toolchains.port import Refused

__all__ = ["Entry", "Job", "jobs", "kernel_key", "load_order", "resolve", "split"]

_MAX_VARIANTS = 32
_MAX_HEADER = 64 << 10
_MAX_HIDDEN = 1 << 20
_TYPES = {
    "float32": "fp32",
    "float64": "fp64",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "bool": "i1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One kernel to compile: types of its positional arguments, numbers known at compile time."""

    key: str
    name: str
    types: tuple[str, ...]
    constants: tuple[tuple[str, int], ...]
    warps: int
    stages: int

    def to_json(self) -> dict[str, Any]:
        """As ``triton_compile`` reads it."""
        return {
            "key": self.key,
            "name": self.name,
            "types": list(self.types),
            "constants": dict(self.constants),
            "warps": self.warps,
            "stages": self.stages,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One compiled kernel in a payload."""

    key: str
    symbol: str
    threads: int
    """Of a block."""
    shared: int
    """Dynamic shared memory of a block, in bytes."""
    hidden: tuple[int, ...]
    """Bytes for each block of every scratch pointer behind the kernel's own arguments; 0 is a null pointer."""
    offset: int
    size: int

    def to_json(self) -> dict[str, Any]:
        """As it stands in a package's ``entries``, under its key."""
        return {
            "symbol": self.symbol,
            "threads": self.threads,
            "shared": self.shared,
            "hidden": list(self.hidden),
            "module": [self.offset, self.size],
        }


def kernel_key(launch: BoundLaunch) -> str:
    """Name of one way to compile a kernel: what is known at compile time, in one text."""
    constants = ",".join(f"{name}={value}" for name, value in sorted(launch.constants))
    return f"{launch.kernel}/{launch.warps}/{launch.stages}/{constants}"


def jobs(plan: LaunchPlan, bound: Sequence[BoundPlan], parameters: Sequence[Parameter]) -> tuple[Job, ...]:
    """What to compile so that every bound plan (one for each case) can be launched. Raises Refused for too much."""
    found: dict[str, Job] = {}
    for one in bound:
        for launch in one.launches:
            key = kernel_key(launch)
            types = tuple(_type(argument, plan, parameters) for argument in launch.arguments)
            job = Job(
                key=key,
                name=launch.kernel,
                types=types,
                constants=launch.constants,
                warps=launch.warps,
                stages=launch.stages,
            )
            if found.setdefault(key, job) != job:
                raise Refused(f"the launch plan starts {launch.kernel} with different types; write two kernels")
    if len(found) > _MAX_VARIANTS:
        raise Refused(
            f"{len(found)} variants would be compiled; make constants tunables, not sizes (at most {_MAX_VARIANTS})"
        )
    return tuple(found.values())


def _type(argument: tuple[str | int, ...], plan: LaunchPlan, parameters: Sequence[Parameter]) -> str:
    kind = argument[0]
    if kind == "scratch":
        return f"*{_TYPES[plan.scratch[int(argument[1])].dtype]}"
    if kind == "scalar":
        return _TYPES[str(argument[1])]
    parameter = parameters[int(argument[1])]
    pointer = "*" if parameter.role in (Role.IN, Role.OUT) else ""
    return f"{pointer}{_TYPES[parameter.dtype]}"


def split(payload: bytes) -> tuple[Entry, ...]:
    """The kernels of a payload, their places counted from its first byte. Raises ElfError; the bytes are hostile."""
    end = payload.find(b"\n", 0, _MAX_HEADER)
    if end < 0:
        raise ElfError("the compiler's output has no header")
    at = end + 1
    found = []
    try:
        for one in json.loads(payload[:end])["entries"]:
            size = one.get("size", len(payload) - at)
            entry = Entry(
                key=_text(one["key"]),
                symbol=_text(one["symbol"]),
                threads=_number(one["threads"], 1, 1024),
                shared=_number(one["shared"], 0, 228 << 10),
                hidden=tuple(_number(size, 0, _MAX_HIDDEN) for size in one["hidden"][:8]),
                offset=at,
                size=_number(size, 1, len(payload) - at),
            )
            found.append(entry)
            at += size if "size" in one else 0
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ElfError(f"the compiler's output has a damaged header: {type(error).__name__}: {error}") from error
    if not found or len(found) > _MAX_VARIANTS:
        raise ElfError(f"the compiler's output holds {len(found)} kernels")
    return tuple(found)


def _text(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 400:
        raise ValueError("a name that is none")
    return value


def _number(value: object, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"{value!r} does not lie between {low} and {high}")
    return value


def resolve(bound: BoundPlan, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The ``plan`` of a child's map order: threads and shared memory are the compiler's.

    Raises KeyError with the key of a variant that was not compiled.
    """
    launches = []
    for launch in bound.launches:
        entry = entries[kernel_key(launch)]
        launches.append(
            {
                "kernel": kernel_key(launch),
                "grid": list(launch.grid),
                "block": [entry["threads"], 1, 1],
                "shared": entry["shared"],
                "args": [list(argument) for argument in launch.arguments],
            }
        )
    return {"scratch": list(bound.scratch), "launches": launches}


def load_order(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What a child's load order says besides the path: places of the modules, and the kernels in them."""
    keys = sorted(entries)
    return {
        "modules": [list(entries[key]["module"]) for key in keys],
        "kernels": {
            key: [number, entries[key]["symbol"], list(entries[key]["hidden"])] for number, key in enumerate(keys)
        },
    }
