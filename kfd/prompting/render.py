"""From what the campaign knows to what the model reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from jinja2 import FileSystemLoader, StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kfd.prompting import quoting
from kfd.tasks.signature import C_TYPES, c_signature
from kfd.tasks.spec import KernelFile, Parameter, Role, TaskSpec

__all__ = ["MAX_PROMPT_CHARACTERS", "OPERATORS", "Exemplar", "Prompt", "PromptRequest", "prompt"]

OPERATORS = ("rewrite", "patch", "repair")

MAX_PROMPT_CHARACTERS = 200_000
"""Longest user prompt. Beyond it inspirations go first, the last one first, then the best, then hints."""

_KERNEL_CAP = 600_000
_TEXT_CAP = 2000
_PROSE_CAP = 32_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemplar:
    """A kernel that the model is shown, and what became of it. Lines are ready for people."""

    candidate: str
    kernel: KernelFile
    outcome: str = ""
    """Verdict code; empty when not judged."""
    text: str = ""
    diagnostics: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    speeds: tuple[str, ...] = ()
    """One line for each baseline: value, interval, count."""
    cell: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest:
    """Everything that a prompt may say. Equal requests give equal prompts."""

    spec: TaskSpec
    operator: str
    parent: Exemplar | None = None
    best: Exemplar | None = None
    inspirations: tuple[Exemplar, ...] = ()
    hints: tuple[str, ...] = ()
    device: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """The two messages that a model is sent."""

    system: str
    user: str


def prompt(request: PromptRequest) -> Prompt:
    """Render a request. Raises ValueError for an operator without a template, or patch and repair without
    parent."""
    if request.operator not in OPERATORS:
        raise ValueError(f"no prompt for operator {request.operator!r}; there are {', '.join(OPERATORS)}")
    if request.parent is None and request.operator != "rewrite":
        raise ValueError(f"{request.operator} needs a parent")
    system = _template("system.j2").render(toolchain=request.spec.toolchain).strip() + "\n"
    request = _without_repetition(request)
    user = _user(request)
    while len(user) > MAX_PROMPT_CHARACTERS:
        if request.inspirations:
            request = replace(request, inspirations=request.inspirations[:-1])
        elif request.best is not None:
            request = replace(request, best=None)
        elif request.hints:
            request = replace(request, hints=())
        else:
            break
        user = _user(request)
    return Prompt(system, user)


def _without_repetition(request: PromptRequest) -> PromptRequest:
    seen = {request.parent.candidate} if request.parent is not None else set()
    best = request.best if request.best is not None and request.best.candidate not in seen else None
    if best is not None:
        seen.add(best.candidate)
    others: list[Exemplar] = []
    for exemplar in request.inspirations:
        if exemplar.candidate not in seen:
            seen.add(exemplar.candidate)
            others.append(exemplar)
    return replace(request, best=best, inspirations=tuple(others))


def _user(request: PromptRequest) -> str:
    spec = request.spec
    kernel = request.parent.kernel if request.parent is not None else spec.kernel
    text = _template("user.j2").render(
        name=quoting.one_line(spec.name, 64),
        description=quoting.one_line(spec.description, 4000),
        signature=c_signature(spec),
        arguments=[_argument(parameter) for parameter in spec.parameters],
        cases=[_case(case.name, case.sizes, case.timed) for case in spec.cases],
        tolerance=spec.tolerance,
        baseline=spec.baseline,
        initial_exists=not spec.kernel.is_empty,
        target_speedup=f"{spec.target_speedup:g}",
        target=spec.targets[0],
        flags=" ".join(spec.flags),
        reference=quoting.fence(spec.reference_text, _PROSE_CAP, "python", trusted=True),
        instructions=quoting.clean(spec.instructions, _PROSE_CAP).strip(),
        device=[(quoting.one_line(key, 60), quoting.one_line(value, 200)) for key, value in request.device],
        kernel_path=kernel.path,
        file=quoting.fence(kernel.text, _KERNEL_CAP, "cpp", trusted=True),
        empty=kernel.is_empty,
        block_count=len(kernel.blocks),
        parent=_shown(request.parent),
        best=_shown(request.best),
        inspirations=[_shown(exemplar) for exemplar in request.inspirations],
        hints=quoting.lines(request.hints, 12, 600),
        operator=request.operator,
        answer=_template(f"answer_{request.operator}.j2").render(
            entry=spec.entry, block_count=len(kernel.blocks), empty=kernel.is_empty
        ),
    )
    return text.strip() + "\n"


@dataclass(frozen=True, slots=True)
class _Shown:
    """An exemplar made harmless."""

    candidate: str
    code: str
    outcome: str
    text: str
    diagnostics: list[str]
    cases: list[str]
    speeds: list[str]
    cell: str
    ok: bool


def _shown(exemplar: Exemplar | None) -> _Shown | None:
    if exemplar is None:
        return None
    return _Shown(
        candidate=quoting.one_line(exemplar.candidate, 64),
        code=quoting.fence("\n".join(exemplar.kernel.contents()), _KERNEL_CAP, "cpp", trusted=True),
        outcome=quoting.one_line(exemplar.outcome, 64),
        text=quoting.fence(exemplar.text, _TEXT_CAP) if exemplar.text.strip() else "",
        diagnostics=quoting.lines(exemplar.diagnostics, 20),
        cases=quoting.lines(exemplar.cases, 16),
        speeds=quoting.lines(exemplar.speeds, 8),
        cell=quoting.one_line(exemplar.cell, 64),
        ok=exemplar.outcome == "ok",
    )


def _argument(parameter: Parameter) -> str:
    if parameter.role is Role.SIZE:
        return f"{parameter.name}: a size, int64_t"
    kind = C_TYPES[parameter.dtype]
    note = f" ({parameter.dtype} as its 16 bits)" if kind == "uint16_t" else ""
    if parameter.role is Role.SCALAR:
        return f"{parameter.name}: a number, {kind}{note}"
    shape = ", ".join(parameter.shape)
    way = "read only" if parameter.role is Role.IN else "to be written in full, holds garbage on entry"
    return f"{parameter.name}: array of {kind}{note}, shape [{shape}], row-major and contiguous, {way}"


def _case(name: str, sizes: tuple[tuple[str, int], ...], timed: bool) -> str:
    numbers = ", ".join(f"{key} = {value}" for key, value in sizes)
    return f"{name}: {numbers or 'no sizes'} ({'checked and timed' if timed else 'checked only'})"


@cache
def _template(name: str) -> Template:
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # The output is text for a model, not markup; quoting.py makes it harmless.
        autoescape=False,
    )
    return environment.get_template(name)
