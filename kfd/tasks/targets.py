"""Toolchains, targets, flags and tolerance classes that a task may name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kfd.base.work import CHECKED_ONLY
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
    device_form: bool = False
    """Kernels are device code with a launch plan in comments (DESIGN, section 5); there is no host code."""
    host_form: bool = False
    """A kernel file may also be an exported C function; with ``device_form``, one without a launch plan is."""


_CPP_FLAG = re.compile(
    r"-O[0-3]|-std=(?:c|gnu)\+\+(?:14|17|20|23)|-D[A-Za-z_][A-Za-z0-9_]*(?:=[A-Za-z0-9_.+-]*)?"
    r"|-f(?:no-)?(?:openmp|openmp-simd|unroll-loops|tree-vectorize|tree-slp-vectorize|strict-aliasing|math-errno"
    r"|trapping-math|signed-zeros|associative-math|reciprocal-math|finite-math-only|fast-math|inline-functions)"
    r"|-ffp-contract=(?:on|off|fast)|-fvect-cost-model=(?:unlimited|dynamic|cheap|very-cheap)"
    r"|-m(?:arch|tune)=[a-z0-9][a-z0-9.-]*|-mprefer-vector-width=(?:128|256|512)|-m(?:no-)?[a-z][a-z0-9.]*"
)

_DEFINE = r"-D[A-Za-z_][A-Za-z0-9_]*(?:=[A-Za-z0-9_.+-]*)?"
_OPENCL_FLAG = re.compile(
    rf"{_DEFINE}|-cl-std=CL(?:1\.2|2\.0|3\.0)|-cl-(?:fast-relaxed-math|mad-enable|no-signed-zeros|finite-math-only"
    r"|unsafe-math-optimizations|denorms-are-zero|single-precision-constant|uniform-work-group-size|opt-disable)"
)
_SYCL_FLAG = re.compile(rf"{_DEFINE}|-O[0-3]|-std=c\+\+(?:17|20|23)|-f(?:no-)?fast-math|-ffp-contract=(?:on|off|fast)")
_CUDA_FLAG = re.compile(
    rf"{_DEFINE}|-O[0-3]|-std=c\+\+(?:14|17|20)|--?use_fast_math|--?maxrregcount=[1-9][0-9]{{0,2}}"
    r"|--?(?:ftz|prec-div|prec-sqrt|fmad)=(?:true|false)|--?extra-device-vectorization"
    r"|-Xptxas=(?:-O[0-3]|-dlcm=c[agsv]|-allow-expensive-optimizations=(?:true|false))"
)
_INTEL_GPUS = ("tgllp", "dg1", "acm-g10", "pvc", "mtl", "lnl", "bmg")
"""Names of ``ocloc``: Tiger Lake, DG1, Arc A, Data Center Max, Meteor Lake, Lunar Lake, Arc B."""
_NVIDIA_GPUS = ("75", "80", "86", "87", "89", "90", "90a", "100", "100a", "103", "103a", "120", "120a")

TOOLCHAINS: dict[str, Toolchain] = {
    toolchain.name: toolchain
    for toolchain in (
        Toolchain(
            name="cpp", targets=("cpp:native",), suffixes=(".cpp", ".cc", ".cxx"), flag=_CPP_FLAG, host_form=True
        ),
        Toolchain(
            name="opencl",
            targets=("opencl:cpu", "opencl:gpu", *(f"opencl:{gpu}" for gpu in _INTEL_GPUS)),
            suffixes=(".cl",),
            flag=_OPENCL_FLAG,
            device_form=True,
        ),
        Toolchain(
            name="sycl",
            targets=("sycl:cpu",),
            suffixes=(".sycl", ".cpp", ".cxx", ".cc"),
            flag=_SYCL_FLAG,
            device_form=True,
        ),
        Toolchain(
            name="cuda",
            targets=tuple(f"cuda:sm_{gpu}" for gpu in _NVIDIA_GPUS),
            suffixes=(".cu",),
            flag=_CUDA_FLAG,
            device_form=True,
            host_form=True,
        ),
        Toolchain(
            name="triton",
            targets=(*(f"triton:sm_{gpu}" for gpu in _NVIDIA_GPUS), CHECKED_ONLY),
            suffixes=(".py",),
            flag=re.compile(r"(?!)"),
            device_form=True,
        ),
        Toolchain(
            name="sim",
            targets=("sim:device", "sim:other"),
            suffixes=(".cpp", ".cc", ".cxx", ".txt"),
            flag=_CPP_FLAG,
            simulated=True,
            host_form=True,
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
