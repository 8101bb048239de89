"""From what the campaign knows to what the model reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from jinja2 import FileSystemLoader, StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kfd.core.search.prompt_archive import Region
from kfd.prompting import quoting, regions, tokens
from kfd.tasks.launchplan import in_device_form
from kfd.tasks.signature import C_TYPES, c_signature
from kfd.tasks.spec import KernelFile, Parameter, Role, TaskSpec
from kfd.tasks.tunables import PlanError

__all__ = [
    "MAX_PROMPT_CHARACTERS",
    "OPERATORS",
    "Exemplar",
    "Prompt",
    "PromptRequest",
    "PromptTooLong",
    "in_device_form_of",
    "prompt",
    "template",
]

OPERATORS = ("rewrite", "patch", "repair", "crossover", "template", "simplify")

MAX_PROMPT_CHARACTERS = 200_000
"""Longest user prompt. What goes first beyond it, and beyond a request's ``max_tokens``, says ``prompt``."""

_LEFT_OUT = "# left out"
"""In place of a reference that there is no room for."""

_FENCES = {"opencl": "c", "cuda": "cuda", "triton": "python"}
"""Tags of code blocks; C++ for every other toolchain."""

_OPENCL_C = {
    "int32_t": "int",
    "int64_t": "long",
    "uint8_t": "uchar",
    "uint16_t": "ushort",
    "bool": "uchar",
}
_KINDS: dict[str, dict[str, str]] = {
    "opencl": {dtype: _OPENCL_C.get(kind, kind) for dtype, kind in C_TYPES.items()},
    "triton": {dtype: dtype for dtype in C_TYPES},
}
"""What the elements of an array are called in device code; C's names elsewhere."""

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
    facts: tuple[str, ...] = ()
    """What the compiler told, a line each."""
    bottleneck: str = ""
    """What limits it, one sentence."""
    device: tuple[tuple[str, str], ...] = ()
    """Facts of the machine that measured it."""


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
    regions: tuple[tuple[Region, str], ...] = ()
    """What the prompt variant says."""
    max_tokens: int | None = None
    """Tokens that system and user message together may have at most; None where no model's window is known."""


class PromptTooLong(ValueError):
    """Not even what is never left out fits."""

    def __init__(self, least: int, limit: int) -> None:
        super().__init__(f"the shortest prompt has up to {least} tokens, {limit} fit")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The two messages that a model is sent."""

    system: str
    user: str


def prompt(request: PromptRequest) -> Prompt:
    """Render a request, trimmed until it fits.

    What goes, in this order: inspirations, the last one first; the best kernel; hints; of the parent the results of
    its cases, the messages of the compiler, what it made of the code, the output of tools; the advice of the prompt
    variant; the text of the reference. What never goes: the task and what its user asks for, the file to work on and
    its verdict, the form of the answer. Quotations stay quoted.

    Raises ValueError for an operator without a template, or one without the parent that it needs; PromptTooLong when
    what never goes has more tokens than ``max_tokens``.
    """
    if request.operator not in OPERATORS:
        raise ValueError(f"no prompt for operator {request.operator!r}; there are {', '.join(OPERATORS)}")
    if request.parent is None and request.operator != "rewrite":
        raise ValueError(f"{request.operator} needs a parent")
    spec = request.spec
    system = template("system.j2").render(
        toolchain=spec.toolchain, device_form=in_device_form_of(spec), advice=bool(request.regions)
    )
    system = system.strip() + "\n"
    limit = request.max_tokens
    shorter: PromptRequest | None = _without_repetition(request)
    while shorter is not None:
        user = _user(shorter)
        fits = limit is None or tokens.fits((system, user), limit)
        if fits and len(user) <= MAX_PROMPT_CHARACTERS:
            return Prompt(system, user)
        shorter = _shorter(shorter)
    if limit is not None and not fits:
        raise PromptTooLong(tokens.conversation_tokens((system, user)), limit)
    return Prompt(system, user)


def _shorter(request: PromptRequest) -> PromptRequest | None:
    """The request without what goes next; None when only what never goes is left."""
    parent = request.parent
    if request.inspirations:
        return replace(request, inspirations=request.inspirations[:-1])
    if request.best is not None:
        return replace(request, best=None)
    if request.hints:
        return replace(request, hints=())
    if parent is not None and parent.cases:
        return replace(request, parent=replace(parent, cases=()))
    if parent is not None and parent.diagnostics:
        return replace(request, parent=replace(parent, diagnostics=()))
    if parent is not None and (parent.facts or parent.bottleneck):
        return replace(request, parent=replace(parent, facts=(), bottleneck=""))
    if parent is not None and parent.text.strip():
        return replace(request, parent=replace(parent, text=""))
    if request.regions:
        return replace(request, regions=())
    if request.spec.reference_text != _LEFT_OUT:
        return replace(request, spec=replace(request.spec, reference_text=_LEFT_OUT))
    return None


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
    device_form = in_device_form_of(spec)
    target = next((value for key, value in request.device if key == "target"), spec.targets[0])
    tag = _FENCES.get(spec.toolchain, "cpp")
    text = template("user.j2").render(
        name=quoting.one_line(spec.name, 64),
        description=quoting.one_line(spec.description, 4000),
        toolchain=spec.toolchain,
        device_form=device_form,
        entry=spec.entry,
        signature=_choice(spec) if device_form else c_signature(spec),
        arguments=[_argument(parameter, spec.toolchain, device_form) for parameter in spec.parameters],
        cases=[_case(case.name, case.sizes, case.timed) for case in spec.cases],
        tolerance=spec.tolerance,
        baseline=spec.baseline,
        initial_exists=not spec.kernel.is_empty,
        target_speedup=f"{spec.target_speedup:g}",
        target=target,
        target_fact=_target_fact(target),
        flags=" ".join(spec.flags),
        reference=quoting.fence(spec.reference_text, _PROSE_CAP, "python", trusted=True),
        instructions=quoting.clean(spec.instructions, _PROSE_CAP).strip(),
        device=[(quoting.one_line(key, 60), quoting.one_line(value, 200)) for key, value in request.device],
        kernel_path=kernel.path,
        file=quoting.fence(kernel.text, _KERNEL_CAP, tag, trusted=True),
        empty=kernel.is_empty,
        block_count=len(kernel.blocks),
        parent=_shown(request.parent, tag),
        best=_shown(request.best, tag),
        inspirations=[_shown(exemplar, tag) for exemplar in request.inspirations],
        regions=regions.shown(request.regions),
        hints=quoting.lines(request.hints, 12, 600),
        operator=request.operator,
        answer=template(f"answer_{request.operator}.j2").render(
            entry=spec.entry,
            block_count=len(kernel.blocks),
            empty=kernel.is_empty,
            device_form=device_form,
            toolchain=spec.toolchain,
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
    facts: list[str]
    bottleneck: str
    ok: bool


def _shown(exemplar: Exemplar | None, tag: str) -> _Shown | None:
    if exemplar is None:
        return None
    return _Shown(
        candidate=quoting.one_line(exemplar.candidate, 64),
        code=quoting.fence("\n".join(exemplar.kernel.contents()), _KERNEL_CAP, tag, trusted=True),
        outcome=quoting.one_line(exemplar.outcome, 64),
        text=quoting.fence(exemplar.text, _TEXT_CAP) if exemplar.text.strip() else "",
        diagnostics=quoting.lines(exemplar.diagnostics, 20),
        cases=quoting.lines(exemplar.cases, 16),
        speeds=quoting.lines(exemplar.speeds, 8),
        cell=quoting.one_line(exemplar.cell, 64),
        facts=quoting.lines(exemplar.facts, 8),
        bottleneck=quoting.one_line(exemplar.bottleneck, 400),
        ok=exemplar.outcome == "ok",
    )


def in_device_form_of(spec: TaskSpec) -> bool:
    """Whether the task's kernel is device code with a launch plan."""
    try:
        return in_device_form(spec.toolchain, spec.kernel.text)
    except PlanError:
        # A plan that cannot be read is still a plan.
        return True


def _choice(spec: TaskSpec) -> str:
    """What launches can pass on, as a kernel would declare it."""
    kinds = _KINDS.get(spec.toolchain, C_TYPES)
    made = []
    for one in spec.parameters:
        kind = kinds["int64" if one.role is Role.SIZE else one.dtype]
        pointer = one.role in (Role.IN, Role.OUT)
        if spec.toolchain == "triton":
            made.append(f"{one.name}: {'pointer to ' if pointer else ''}{kind}")
        else:
            space = "global " if pointer and spec.toolchain == "opencl" else ""
            fixed = "const " if one.role is Role.IN else ""
            made.append(f"{space}{fixed}{kind} {'*' if pointer else ''}{one.name}")
    return ", ".join(made)


def _target_fact(target: str) -> str:
    """What a target is, in words; empty for one that needs none."""
    toolchain, _, device = target.partition(":")
    if device in _PLACES:
        return _PLACES[device]
    if toolchain in ("cuda", "triton"):
        own = " with the instructions of exactly this chip" if device.endswith("a") else ""
        number = device.removeprefix("sm_").rstrip("a")
        return f"an NVIDIA GPU of compute capability {number[:-1]}.{number[-1:]}{own}"
    return f"an Intel GPU ({device})" if toolchain == "opencl" else ""


_PLACES = {
    "native": "the worker's own processor",
    "cpu": "a processor: work-items of a group run one after the other in the lanes of vector units, local memory is "
    "ordinary memory, and groups run on all cores",
    "gpu": "a GPU",
    "interpreter": "Triton's interpreter, which checks and is never timed",
}


def _argument(parameter: Parameter, toolchain: str, device_form: bool) -> str:
    kinds = _KINDS.get(toolchain, C_TYPES) if device_form else C_TYPES
    if parameter.role is Role.SIZE:
        return f"{parameter.name}: a size, {kinds['int64']}"
    kind = kinds[parameter.dtype]
    note = f" ({parameter.dtype} as its 16 bits)" if kind in ("uint16_t", "ushort") else ""
    if parameter.role is Role.SCALAR:
        return f"{parameter.name}: a number, {kind}{note}"
    shape = ", ".join(parameter.shape)
    way = "read only" if parameter.role is Role.IN else "to be written in full, holds garbage on entry"
    return f"{parameter.name}: array of {kind}{note}, shape [{shape}], row-major and contiguous, {way}"


def _case(name: str, sizes: tuple[tuple[str, int], ...], timed: bool) -> str:
    numbers = ", ".join(f"{key} = {value}" for key, value in sizes)
    return f"{name}: {numbers or 'no sizes'} ({'checked and timed' if timed else 'checked only'})"


@cache
def template(name: str) -> Template:
    """A template of ours by its file's name."""
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # The output is text for a model, not markup; quoting.py makes it harmless.
        autoescape=False,
    )
    return environment.get_template(name)
