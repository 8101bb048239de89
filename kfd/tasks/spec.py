"""What a task folder says, as plain values. Made by ``kfd.tasks.load``; nothing here reads files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kfd.base.digest import Digest
from kfd.base.instant import MINUTE, SECOND, Span

__all__ = [
    "Block",
    "Case",
    "KernelFile",
    "Parameter",
    "Role",
    "TaskLimits",
    "TaskSpec",
    "Tolerance",
]


class Role(StrEnum):
    """What an argument of the kernel's entry function is for."""

    IN = "in"
    OUT = "out"
    SIZE = "size"
    """int64 taken from the case by name."""
    SCALAR = "scalar"
    """A number taken from ``make_inputs`` by name, passed by value in the parameter's dtype."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument of the entry function, in C order."""

    name: str
    role: Role
    dtype: str
    """float32, float64, int32, int64, uint8, bool, float16, bfloat16; int64 for sizes."""
    shape: tuple[str, ...] = ()
    """Dimensions as integer expressions over the case's numbers (``rows``, ``cols * 2``); empty for
    scalars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Bounds of the comparison (evaluation notes, 5.3): relative L2 <= tau and |c-r| <= a*rms(r) + b*|r|."""

    error_class: str
    tau: float
    a: float
    b: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One set of sizes. Timed cases are checked too; hidden ones are only checked."""

    name: str
    sizes: tuple[tuple[str, int], ...]
    timed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One EVOLVE block: character offsets of its contents in the kernel text, markers excluded."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """The kernel file with its EVOLVE blocks."""

    path: str
    text: str
    blocks: tuple[Block, ...]

    @property
    def is_empty(self) -> bool:
        """Whether every block is blank: the campaign generates from nothing."""
        return all(not self.text[block.start : block.end].strip() for block in self.blocks)

    def contents(self) -> tuple[str, ...]:
        """Contents of the blocks, in order."""
        return tuple(self.text[block.start : block.end] for block in self.blocks)

    def with_contents(self, contents: tuple[str, ...]) -> KernelFile:
        """The file with other block contents. Raises ValueError when their number differs."""
        if len(contents) != len(self.blocks):
            raise ValueError(f"{len(self.blocks)} blocks, {len(contents)} contents")
        pieces: list[str] = []
        blocks: list[Block] = []
        at = length = 0
        for block, content in zip(self.blocks, contents, strict=True):
            before = self.text[at : block.start]
            pieces += [before, content]
            blocks.append(Block(start=length + len(before), end=length + len(before) + len(content)))
            length += len(before) + len(content)
            at = block.end
        pieces.append(self.text[at:])
        return KernelFile(path=self.path, text="".join(pieces), blocks=tuple(blocks))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """Bounds of one candidate's build and run."""

    build_ns: Span = MINUTE
    run_ns: Span = 60 * SECOND
    memory_bytes: int = 2 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """A whole task."""

    name: str
    description: str
    flavour: str
    digest: Digest
    """Digest of the canonical archive."""
    targets: tuple[str, ...]
    kernel: KernelFile
    entry: str
    parameters: tuple[Parameter, ...]
    cases: tuple[Case, ...]
    tolerance: Tolerance
    baseline: str
    """Baseline that fitness is measured against: ``reference`` or ``initial``."""
    target_speedup: float
    limits: TaskLimits
    reference_text: str
    """What the prompt shows as the reference (the text between REFERENCE markers, else ``reference``'s
    source)."""
    instructions: str
    """The user's instructions, empty when there are none."""
    budget_candidates: int
    budget_ns: Span
    has_recordings: bool
    flags: tuple[str, ...] = ()
    """Extra compiler flags from the toolchain's allow-list."""

    @property
    def toolchain(self) -> str:
        """Toolchain of the first target."""
        return self.targets[0].partition(":")[0]
