"""The launch plan of a device-form kernel: which kernels trusted code starts, how wide, on what.

Comments of the kernel file, one statement each (docs/tasks.md, Launch plan)::

    // [LAUNCH] scratch sums: float32[rows]
    // [LAUNCH] launch row_sums grid(ceildiv(rows, TILE)) block(TILE) args(x, sums, rows, cols)

``parse`` reads them against the task's interface; ``kfd.tasks.launchbind`` puts a case's sizes and the tunables in.
Pure; the text is a stranger's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kfd.base.expr import ExprError, names
from kfd.tasks import statement, tunables
from kfd.tasks.report import nearest
from kfd.tasks.spec import Parameter, Role
from kfd.tasks.statement import Statement, StatementError
from kfd.tasks.targets import DTYPE_BYTES, TOOLCHAINS
from kfd.tasks.tunables import PlanError, PlanProblem, TuneSpace

__all__ = ["ArgumentKind", "Launch", "LaunchPlan", "PlanArgument", "Scratch", "in_device_form", "parse"]

MAX_LAUNCHES = 16
MAX_SCRATCH = 16
_MAX_DIMENSIONS = 8
_SCRATCH = re.compile(r"scratch[ \t]+([^\s:]{1,80})[ \t]*:[ \t]*([^\s\[]{1,40})[ \t]*\[([^\[\]]*)\]", re.A)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.A)
_CAST = re.compile(r"(int32|int64|local)[ \t]*\((.*)\)", re.A)
_KEYWORD = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*=(?!=)[ \t]*(.*)", re.A)
_EXAMPLE = "Write `launch KERNEL grid(E) block(E) args(A, ...)`."


class ArgumentKind(StrEnum):
    """Where a kernel's argument comes from."""

    PARAMETER = "arg"
    """The task's argument of this number: array (pointer), size (int64) or scalar."""
    SCRATCH = "scratch"
    LOCAL = "local"
    """OpenCL local memory of this many bytes."""
    VALUE = "scalar"
    """An expression's value in a dtype."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArgument:
    """One argument of a launch."""

    kind: ArgumentKind
    index: int = 0
    """Number of the parameter or scratch buffer."""
    expression: str = ""
    dtype: str = ""
    """Of the number, or of the elements that a pointer leads to; empty for local memory."""
    pointer: bool = False
    name: str = ""
    """Keyword of a compile-time argument (Triton), else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """One buffer that holds garbage when a call begins."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel start; extents are integer expressions."""

    kernel: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    arguments: tuple[PlanArgument, ...]
    line: int
    shared: str = "0"
    warps: str = ""
    stages: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """What is started, in order; each launch sees what the ones before it wrote."""

    scratch: tuple[Scratch, ...]
    launches: tuple[Launch, ...]
    space: TuneSpace


def in_device_form(toolchain: str, text: str) -> bool:
    """Whether a kernel text is device code with a launch plan. Raises PlanError for a misspelt one.

    Where a toolchain knows both forms, a text without any ``[LAUNCH]`` is host form. No for a toolchain not known.
    """
    known = TOOLCHAINS.get(toolchain)
    if known is None or not known.device_form:
        return False
    return not known.host_form or any(True for _ in tunables.directives(text, "LAUNCH"))


def parse(text: str, parameters: Sequence[Parameter], toolchain: str) -> LaunchPlan:
    """The plan in a kernel text. Raises PlanError with every problem's line and mend."""
    space = tunables.parse(text)
    reader = _Reader(parameters, space, toolchain)
    problems: list[PlanProblem] = reader.clashes()
    for line, rest in tunables.directives(text, "LAUNCH"):
        try:
            reader.take(line, rest)
        except (StatementError, ExprError) as error:
            problems.append(PlanProblem(line=line, text=str(error), mend=_EXAMPLE))
        except PlanError as error:
            problems += error.problems
    if not reader.launches and not problems:
        mend = "Add a comment `[LAUNCH] launch KERNEL grid(E) block(E) args(A, ...)` inside the EVOLVE block."
        problems.append(PlanProblem(line=0, text="there is no launch plan", mend=mend))
    if problems:
        raise PlanError(problems)
    return LaunchPlan(scratch=tuple(reader.scratch), launches=tuple(reader.launches), space=space)


def _wrong(line: int, text: str, mend: str) -> PlanError:
    return PlanError([PlanProblem(line=line, text=text, mend=mend)])


class _Reader:
    """Statements one by one; later ones see the scratch buffers of earlier ones."""

    def __init__(self, parameters: Sequence[Parameter], space: TuneSpace, toolchain: str) -> None:
        self.scratch: list[Scratch] = []
        self.launches: list[Launch] = []
        self._parameters = {parameter.name: index for index, parameter in enumerate(parameters)}
        self._roles = {parameter.name: parameter for parameter in parameters}
        sizes = {parameter.name for parameter in parameters if parameter.role is Role.SIZE}
        shapes = {name for parameter in parameters for extent in parameter.shape for name in names(extent)}
        self._numbers = sizes | shapes | space.names
        self._space = space
        self._toolchain = toolchain

    def clashes(self) -> list[PlanProblem]:
        """Tunables that have a name of the task's: an expression could mean either."""
        taken = self._parameters.keys() | (self._numbers - self._space.names)
        return [
            PlanProblem(line=one.line, text=f"tunable {one.name} has an argument's name", mend="Rename the tunable.")
            for one in self._space.tunables
            if one.name in taken
        ]

    def take(self, line: int, rest: str) -> None:
        """Read one statement. Raises PlanError, StatementError or ExprError."""
        if re.match(r"scratch\b", rest):
            self._scratch(line, rest)
            return
        found = statement.read(rest)
        if found.words[:1] != ("launch",) or len(found.words) != 2:
            first = found.words[0] if found.words else rest[:20]
            raise _wrong(line, f"`{first}` begins no statement", "A statement is `scratch ...` or `launch KERNEL ...`.")
        if len(self.launches) >= MAX_LAUNCHES:
            raise _wrong(line, f"more than {MAX_LAUNCHES} launches", "Do more in each kernel.")
        self.launches.append(self._launch(line, found))

    def _scratch(self, line: int, rest: str) -> None:
        match = _SCRATCH.fullmatch(rest)
        if match is None:
            raise _wrong(line, f"`{rest[:80]}` is no scratch buffer", "Write `scratch sums: float32[rows, 4]`.")
        name, dtype, extents = match[1], match[2], statement.split(match[3])
        if not _NAME.fullmatch(name) or name in self._parameters or name in self._numbers:
            raise _wrong(line, f"`{name}` cannot name a scratch buffer", "Use a free name.")
        if any(one.name == name for one in self.scratch) or len(self.scratch) >= MAX_SCRATCH:
            raise _wrong(line, f"scratch {name} is there twice or one too many", f"Keep to {MAX_SCRATCH} names.")
        if dtype not in DTYPE_BYTES:
            close = nearest(dtype, DTYPE_BYTES)
            mend = f"Did you mean {close}?" if close else f"There are {', '.join(DTYPE_BYTES)}."
            raise _wrong(line, f"`{dtype}` is no dtype", mend)
        if not 1 <= len(extents) <= _MAX_DIMENSIONS:
            raise _wrong(line, f"scratch {name} has {len(extents)} dimensions", f"Give 1 to {_MAX_DIMENSIONS}.")
        shape = tuple(self._expression(line, extent) for extent in extents)
        self.scratch.append(Scratch(name=name, dtype=dtype, shape=shape, line=line))

    def _launch(self, line: int, found: Statement) -> Launch:
        allowed = _CLAUSES[self._toolchain]
        clauses: dict[str, tuple[str, ...]] = {}
        for clause in found.clauses:
            if clause.word not in allowed:
                close = nearest(clause.word, allowed)
                mend = f"Did you mean `{close}`?" if close else f"There are {', '.join(allowed)}."
                raise _wrong(line, f"`{clause.word}` is no clause of a {self._toolchain} launch", mend)
            if clause.word in clauses:
                raise _wrong(line, f"`{clause.word}` is there twice", "Keep one.")
            clauses[clause.word] = clause.items
        for word in ("grid", "block"):
            if word in allowed and not 1 <= len(clauses.get(word, ())) <= 3:
                raise _wrong(line, f"`{word}` needs 1 to 3 numbers", f"Write `{word}(E)`, `{word}(E, E)` or three.")
        if not clauses.get("args"):
            raise _wrong(line, "`args` names no argument", "Give the kernel's arguments in order: `args(x, y, n)`.")
        shared, warps, stages = (self._one(line, word, clauses.get(word)) for word in ("shared", "warps", "stages"))
        return Launch(
            kernel=found.words[1],
            grid=tuple(self._expression(line, item) for item in clauses["grid"]),
            block=tuple(self._expression(line, item) for item in clauses.get("block", ())),
            arguments=tuple(self._argument(line, item) for item in clauses["args"]),
            line=line,
            shared=shared or "0",
            warps=warps or ("4" if "warps" in allowed else ""),
            stages=stages or ("3" if "stages" in allowed else ""),
        )

    def _one(self, line: int, word: str, items: tuple[str, ...] | None) -> str:
        if items is None:
            return ""
        if len(items) != 1:
            raise _wrong(line, f"`{word}` needs one number", f"Write `{word}(E)`.")
        # `bytes` after the number is how people say what it is.
        return self._expression(line, re.sub(r"[ \t]+bytes$", "", items[0]) if word == "shared" else items[0])

    def _expression(self, line: int, text: str) -> str:
        try:
            unknown = sorted(names(text) - self._numbers)
        except ExprError as error:
            raise _wrong(line, f"`{text[:80]}`: {error}", "Use integers, sizes, tunables, + - * // % ( ).") from None
        if unknown:
            close = nearest(unknown[0], self._numbers)
            known = ", ".join(sorted(self._numbers)) or "none"
            mend = f"Did you mean {close}?" if close else f"Sizes and tunables here: {known}."
            raise _wrong(line, f"`{text[:80]}` uses {unknown[0]}, which is no size and no tunable", mend)
        return text

    def _argument(self, line: int, text: str) -> PlanArgument:
        keyword = _KEYWORD.fullmatch(text)
        if keyword is not None:
            if self._toolchain != "triton":
                raise _wrong(line, f"`{text[:80]}` is a keyword argument", "Only Triton has those; give a position.")
            value = self._expression(line, keyword[2])
            return PlanArgument(kind=ArgumentKind.VALUE, expression=value, dtype="int64", name=keyword[1])
        if text in self._parameters:
            parameter = self._roles[text]
            pointer = parameter.role in (Role.IN, Role.OUT)
            index = self._parameters[text]
            return PlanArgument(kind=ArgumentKind.PARAMETER, index=index, dtype=parameter.dtype, pointer=pointer)
        for index, buffer in enumerate(self.scratch):
            if buffer.name == text:
                return PlanArgument(kind=ArgumentKind.SCRATCH, index=index, dtype=buffer.dtype, pointer=True)
        if text in self._numbers:
            return PlanArgument(kind=ArgumentKind.VALUE, expression=text, dtype="int64")
        cast = _CAST.fullmatch(text)
        if cast is None:
            known = [*self._parameters, *(one.name for one in self.scratch), *sorted(self._numbers)]
            close = nearest(text, known)
            mend = f"Did you mean {close}?" if close else "Expressions need a type: `int32(E)` or `int64(E)`."
            raise _wrong(line, f"`{text[:80]}` is no argument, scratch buffer, size or tunable", mend)
        value = self._expression(line, cast[2])
        if cast[1] != "local":
            return PlanArgument(kind=ArgumentKind.VALUE, expression=value, dtype=cast[1])
        if self._toolchain != "opencl":
            raise _wrong(line, f"{self._toolchain} kernels take no local pointers", _LOCAL[self._toolchain])
        return PlanArgument(kind=ArgumentKind.LOCAL, expression=value, pointer=True)


_CLAUSES: dict[str, tuple[str, ...]] = {
    "opencl": ("grid", "block", "args"),
    "sycl": ("grid", "block", "args"),
    "cuda": ("grid", "block", "shared", "args"),
    "triton": ("grid", "warps", "stages", "args"),
}
_LOCAL = {
    "sycl": "Declare `work_group_static` in the kernel.",
    "cuda": "Declare `__shared__` in the kernel, or `extern __shared__` with `shared(BYTES)`.",
    "triton": "Triton places tiles itself.",
}
