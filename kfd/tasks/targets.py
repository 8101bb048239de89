"""Toolchains, targets, flags and tolerance classes that a task may name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kfd.tasks.spec import Tolerance

__all__ = ["DTYPE_BYTES", "TOLERANCES", "TOOLCHAINS", "Toolchain", "all_targets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """What the task format knows of a toolchain; whether a worker offers it is another question."""

    name: str
    targets: tuple[str, ...]
    suffixes: tuple[str, ...]
    """Suffixes of kernel files it compiles."""
    flag: re.Pattern[str]
    """Flags that a task may add: nothing that names a file, a plugin, a linker or another program."""
    simulated: bool = False
    """Results are made up by a simulated device and marked so."""


_CPP_FLAG = re.compile(
    r"-O[0-3]|-std=(?:c|gnu)\+\+(?:14|17|20|23)|-D[A-Za-z_][A-Za-z0-9_]*(?:=[A-Za-z0-9_.+-]*)?"
    r"|-f(?:no-)?(?:openmp|openmp-simd|unroll-loops|tree-vectorize|tree-slp-vectorize|strict-aliasing|math-errno"
    r"|trapping-math|signed-zeros|associative-math|reciprocal-math|finite-math-only|fast-math|inline-functions)"
    r"|-ffp-contract=(?:on|off|fast)|-fvect-cost-model=(?:unlimited|dynamic|cheap|very-cheap)"
    r"|-m(?:arch|tune)=[a-z0-9][a-z0-9.-]*|-mprefer-vector-width=(?:128|256|512)|-m(?:no-)?[a-z][a-z0-9.]*"
)

TOOLCHAINS: dict[str, Toolchain] = {
    toolchain.name: toolchain
    for toolchain in (
        Toolchain(name="cpp", targets=("cpp:native",), suffixes=(".cpp", ".cc", ".cxx"), flag=_CPP_FLAG),
        Toolchain(
            name="sim",
            targets=("sim:device",),
            suffixes=(".cpp", ".cc", ".cxx", ".txt"),
            flag=_CPP_FLAG,
            simulated=True,
        ),
    )
}
"""By name. ``sim`` is a simulated device for trying the system; its results are marked simulated."""

TOLERANCES: dict[str, Tolerance] = {
    name: Tolerance(error_class=name, tau=tau, a=a, b=b)
    for name, tau, a, b in (
        ("fp64", 1e-12, 1e-11, 1e-11),
        ("fp32", 1e-5, 1e-4, 1e-5),
        ("tf32", 1.5e-3, 1e-2, 2e-3),
        ("fp16", 2e-3, 1e-2, 2e-3),
        ("bf16", 1e-2, 5e-2, 1.6e-2),
        ("exact", 0.0, 0.0, 0.0),
    )
}
"""Bounds by error class (evaluation notes, 5.3)."""

DTYPE_BYTES: dict[str, int] = {
    "float32": 4,
    "float64": 8,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "bool": 1,
    "float16": 2,
    "bfloat16": 2,
}
"""Bytes of one element, by dtype."""


def all_targets() -> tuple[str, ...]:
    """Every target that a task may name."""
    return tuple(target for toolchain in TOOLCHAINS.values() for target in toolchain.targets)
