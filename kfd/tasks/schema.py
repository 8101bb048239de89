"""The keys of config.yaml as data: one table that the reader obeys and docs/tasks.md is tested against."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CONFIG", "Key", "Kind", "all_keys"]


class Kind(StrEnum):
    """What a value must be."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    TEXTS = "list of texts"
    DIMENSIONS = "list of expressions"
    SECTION = "section"
    SECTIONS = "list of sections"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of config.yaml."""

    name: str
    kind: Kind
    doc: str
    required: bool = False
    default: str = ""
    """What holds when the key is absent, as the document shows it."""
    unit: str = ""
    low: float = float("-inf")
    high: float = float("inf")
    """Inclusive bounds of numbers; of texts, bounds of the length; of lists, of the count."""
    choices: tuple[str, ...] = ()
    children: tuple[Key, ...] = ()


_INTERFACE = (
    Key(
        name="name",
        kind=Kind.TEXT,
        required=True,
        doc="Name of the C argument, and of the Python one",
        high=64,
    ),
    Key(
        name="role",
        kind=Kind.TEXT,
        required=True,
        choices=("in", "out", "size", "scalar"),
        doc="`in`, `out`: arrays; `size`: int64 from the case; `scalar`: a number from `make_inputs`",
    ),
    Key(
        name="dtype",
        kind=Kind.TEXT,
        default="none; int64 for sizes",
        doc="Element type; required for `in`, `out` and `scalar`",
        choices=("float32", "float64", "int32", "int64", "uint8", "bool", "float16", "bfloat16"),
    ),
    Key(
        name="shape",
        kind=Kind.DIMENSIONS,
        default="none",
        low=1,
        high=8,
        doc="Dimensions as expressions over the case's sizes; required for `in` and `out`",
    ),
)

_TOLERANCE = (
    Key(
        name="class",
        kind=Kind.TEXT,
        default="`fp32`",
        choices=("fp64", "fp32", "tf32", "fp16", "bf16", "exact"),
        doc="Error class that sets the three bounds",
    ),
    Key(
        name="tau",
        kind=Kind.NUMBER,
        default="the class's",
        low=0,
        high=1,
        doc="Bound of the relative L2 error",
    ),
    Key(
        name="a",
        kind=Kind.NUMBER,
        default="the class's",
        low=0,
        high=1,
        doc="Part of rms(r) in the element bound",
    ),
    Key(
        name="b",
        kind=Kind.NUMBER,
        default="the class's",
        low=0,
        high=1,
        doc="Part of the element's own size in it",
    ),
)

_LIMITS = (
    Key(
        name="build_seconds",
        kind=Kind.NUMBER,
        default="60",
        unit="s",
        low=1,
        high=3600,
        doc="Longest build of one candidate",
    ),
    Key(
        name="run_seconds",
        kind=Kind.NUMBER,
        default="60",
        unit="s",
        low=1,
        high=3600,
        doc="Longest check and benchmark of one candidate",
    ),
    Key(
        name="memory_mb",
        kind=Kind.INTEGER,
        default="2048",
        unit="MiB",
        low=64,
        high=1 << 20,
        doc="Memory of one candidate's processes",
    ),
)

_BUDGET = (
    Key(
        name="candidates",
        kind=Kind.INTEGER,
        default="24",
        unit="candidates",
        low=1,
        high=1_000_000,
        doc="Candidates asked for before the campaign ends",
    ),
    Key(
        name="hours",
        kind=Kind.NUMBER,
        default="8",
        unit="h",
        low=0.001,
        high=8760,
        doc="Active time of a campaign",
    ),
)

CONFIG: tuple[Key, ...] = (
    Key(
        name="name",
        kind=Kind.TEXT,
        required=True,
        low=1,
        high=64,
        doc="Name of the task: letters, digits, `-_.`",
    ),
    Key(
        name="description",
        kind=Kind.TEXT,
        default="empty",
        high=10_000,
        doc="What the kernel computes, for people",
    ),
    Key(
        name="flavour",
        kind=Kind.TEXT,
        default="`native`",
        choices=("native",),
        doc="Kind of package; this page's",
    ),
    Key(name="target", kind=Kind.TEXT, default="none", doc="What must become fast; this or `targets`"),
    Key(name="targets", kind=Kind.TEXTS, default="none", low=1, high=8, doc="Several targets of one toolchain"),
    Key(name="kernel", kind=Kind.TEXT, required=True, low=1, high=200, doc="The file with the EVOLVE block"),
    Key(
        name="entry",
        kind=Kind.TEXT,
        default="`solve`",
        high=64,
        doc='Name of the `extern "C"` function; in device form, of a kernel that is launched',
    ),
    Key(
        name="interface",
        kind=Kind.SECTIONS,
        required=True,
        low=1,
        high=64,
        doc="Arguments of the entry function, in C order; in device form, what launches can pass on",
        children=_INTERFACE,
    ),
    Key(
        name="tolerance",
        kind=Kind.SECTION,
        default="class fp32",
        doc="How exact is right",
        children=_TOLERANCE,
    ),
    Key(
        name="baseline",
        kind=Kind.TEXT,
        default="`reference`",
        choices=("reference", "initial"),
        doc="What speedups are measured against",
    ),
    Key(
        name="target_speedup",
        kind=Kind.NUMBER,
        default="2",
        unit="x",
        low=1,
        high=100_000,
        doc="Speedup over the baseline that gives fitness 1",
    ),
    Key(name="limits", kind=Kind.SECTION, default="as below", doc="Bounds of one candidate", children=_LIMITS),
    Key(name="budget", kind=Kind.SECTION, default="as below", doc="Bounds of one campaign", children=_BUDGET),
    Key(
        name="flags",
        kind=Kind.TEXTS,
        default="none",
        high=32,
        doc="Compiler flags from the toolchain's allow-list",
    ),
)

FOREIGN: dict[str, str] = {
    "task_name": "name",
    "job_name": "name",
    "language": "target",
    "gpu_arch": "target",
    "toolchain": "target",
    "inputs": "interface",
    "arguments": "interface",
    "args": "interface",
    "tests": "CASES in task.py",
    "cases": "CASES in task.py",
    "timeout": "limits",
    "flavor": "flavour",
    "type": "role or dtype",
}
"""Keys of other systems and habits, and what they are called here."""


def all_keys(keys: tuple[Key, ...] = CONFIG, prefix: str = "") -> list[tuple[str, Key]]:
    """Every key with its dotted path, sections before their children."""
    found: list[tuple[str, Key]] = []
    for key in keys:
        path = f"{prefix}{key.name}"
        found.append((path, key))
        found += all_keys(key.children, f"{path}{'[]' if key.kind is Kind.SECTIONS else ''}.")
    return found
