"""From an archive to a TaskSpec, or to everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kfd.base.digest import digest_of
from kfd.base.failure import BadInput
from kfd.base.instant import SECOND
from kfd.tasks import config, interface, launchplan, markers, pytask
from kfd.tasks.archive import read, suffix_of, texts_of
from kfd.tasks.config import Section
from kfd.tasks.launchbind import bind
from kfd.tasks.markers import Marked
from kfd.tasks.pytask import TaskModule
from kfd.tasks.report import Problems, nearest, shown
from kfd.tasks.spec import Case, KernelFile, Parameter, TaskLimits, TaskSpec, Tolerance
from kfd.tasks.targets import TOLERANCES, TOOLCHAINS, Toolchain, all_targets
from kfd.tasks.tunables import PlanError

__all__ = ["Task", "load", "problems"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RECORDED = re.compile(r"recorded/(nothing|[0-9a-f]{12})/[a-z_]+\.[0-9]+\.md|recorded/README[^/]*")
_MAX_KERNEL = 512 << 10
_MAX_PROSE = 32 << 10


@dataclass(frozen=True, slots=True)
class Task:
    """A task package: what it says and the bytes of its files."""

    spec: TaskSpec
    files: Mapping[str, bytes]


def load(archive: bytes) -> Task:
    """The task in a canonical archive (``pack``). Raises BadInput, the first of what ``problems`` would
    list."""
    found = Problems()
    task = _load(archive, found)
    if task is None or found.found:
        raise found.found[0]
    return task


def problems(archive: bytes) -> list[BadInput]:
    """Everything that is wrong with a package, in the order of reading; empty when it loads."""
    found = Problems()
    _load(archive, found)
    return found.found


def _load(archive: bytes, found: Problems) -> Task | None:
    try:
        files = texts_of(read(archive))
    except BadInput as error:
        found.found.append(error)
        return None
    texts = {name: _text(name, files, found) for name in (config.FILE, pytask.FILE)}
    section = config.read_config(texts[config.FILE] or "", found) if texts[config.FILE] is not None else None
    module = pytask.read_task(texts[pytask.FILE] or "", found) if texts[pytask.FILE] is not None else None
    _check_recordings(files, found)
    if section is None:
        return None
    toolchain, targets = _targets(section, found)
    kernel, marked = _kernel(section, files, toolchain, found)
    parameters = interface.parameters(section, found)
    if module is not None:
        interface.check_task(parameters, module, section, found)
    if kernel is not None and toolchain is not None and toolchain.device_form and not kernel.is_empty:
        _check_plan(kernel, toolchain, section, parameters, module.cases if module is not None else (), found)
    reference, instructions = _prose(files, kernel, marked, module, found)
    if found.found or kernel is None or module is None:
        return None
    limits, budget = section.section("limits"), section.section("budget")
    spec = TaskSpec(
        name=section.text("name", ""),
        description=section.text("description", ""),
        flavour=section.text("flavour", "native"),
        digest=digest_of(archive),
        targets=targets,
        kernel=kernel,
        entry=section.text("entry", "solve"),
        parameters=parameters,
        cases=module.cases,
        tolerance=_tolerance(section.section("tolerance")),
        baseline=section.text("baseline", "reference"),
        target_speedup=section.number("target_speedup", 2.0),
        limits=TaskLimits(
            build_ns=round(limits.number("build_seconds", 60) * SECOND),
            run_ns=round(limits.number("run_seconds", 60) * SECOND),
            memory_bytes=interface.memory_bytes(section),
        ),
        reference_text=reference,
        instructions=instructions,
        budget_candidates=int(budget.number("candidates", 24)),
        budget_ns=round(budget.number("hours", 8) * 3600 * SECOND),
        has_recordings=any(name.startswith("recorded/") and name.endswith(".md") for name in files),
        flags=tuple(item.text for item in (section.values["flags"].items if "flags" in section.values else ())),
    )
    return Task(spec, files)


def _text(name: str, files: Mapping[str, bytes], found: Problems) -> str | None:
    """A file that must be there, as text."""
    if name not in files:
        deeper = [other for other in files if other.endswith(f"/{name}")]
        close = nearest(name, [other for other in files if "/" not in other])
        if deeper:
            mend = f"There is {deeper[0]}: give the folder that holds it."
        else:
            mend = f"Rename {close} to {name}." if close else f"Add {name} to the task's folder (docs/tasks.md)."
        found.add(f"the package has no {name}", file=name, mend=mend)
        return None
    return _decoded(name, files[name], found)


def _decoded(name: str, data: bytes, found: Problems) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        what = "UTF-16" if utf16 else f"not UTF-8 at byte {error.start}"
        found.add(f"the file is {what}", file=name, line=line, mend="Save the file as UTF-8.")
        return None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        found.add("the file holds a NUL character", file=name, line=line, mend="Save it as plain UTF-8 text.")
        return None
    return text


def _check_recordings(files: Mapping[str, bytes], found: Problems) -> None:
    for name in files:
        if name.startswith("recorded/") and not _RECORDED.fullmatch(name):
            found.add(
                "this recorded answer would never be found",
                file=name,
                mend="Name it recorded/PARENT/OPERATOR.N.md: PARENT is `nothing` or the first 12 hex digits "
                "of the parent kernel's SHA-256, N counts from 0.",
            )
        elif name.startswith("recorded/"):
            _decoded(name, files[name], found)


def _targets(section: Section, found: Problems) -> tuple[Toolchain | None, tuple[str, ...]]:
    file, one, several = config.FILE, section.get("target"), section.get("targets")
    if not _NAME.fullmatch(section.text("name", "x")):
        found.add(
            f"name is {shown(section.text('name', ''))}",
            file=file,
            line=section.line_of("name"),
            mend="Use up to 64 letters, digits, `-_.`, beginning with a letter or digit.",
        )
    if (one is None) == (several is None):
        what = "neither target nor targets is given" if one is None else "both target and targets are given"
        found.add(what, file=file, line=section.line, mend=f"Give one: `target: {all_targets()[0]}`.")
        return None, ()
    items = [one] if one is not None else several.items if several is not None else []
    for item in items:
        if item.text not in all_targets():
            close = nearest(item.text, all_targets())
            found.add(
                f"target {shown(item.text)} is not known",
                file=file,
                line=item.line,
                mend=(f"Did you mean `{close}`? " if close else "") + f"There are: {', '.join(all_targets())}.",
            )
            return None, ()
    targets = tuple(item.text for item in items)
    names = {target.partition(":")[0] for target in targets}
    line = items[0].line if items else section.line
    if len(names) != 1 or len(set(targets)) != len(targets):
        found.add("the targets are not different targets of one toolchain", file=file, line=line, mend="Split them.")
        return None, ()
    toolchain = TOOLCHAINS[names.pop()]
    for flag in section.values["flags"].items if "flags" in section.values else ():
        if not toolchain.flag.fullmatch(flag.text):
            found.add(
                f"flag {shown(flag.text)} is not allowed",
                file=file,
                line=flag.line,
                mend=f"Flags of {toolchain.name} that are allowed: docs/tasks.md, section Flags.",
            )
    return toolchain, targets


def _kernel(
    section: Section, files: Mapping[str, bytes], toolchain: Toolchain | None, found: Problems
) -> tuple[KernelFile | None, list[Marked]]:
    value = section.get("kernel")
    if value is None:
        return None, []
    name, line = value.text, value.line
    if name not in files or name in (config.FILE, pytask.FILE):
        close = nearest(name, [other for other in files if other not in (config.FILE, pytask.FILE)])
        mend = f"Did you mean `{close}`?" if close else "Add the file or correct the name."
        found.add(f"the kernel file {shown(name)} is not in the package", file=config.FILE, line=line, mend=mend)
        return None, []
    if toolchain is not None and suffix_of(name) not in toolchain.suffixes:
        found.add(
            f"{toolchain.name} does not compile {shown(name)}",
            file=config.FILE,
            line=line,
            mend=f"Name it with {' or '.join(toolchain.suffixes)}.",
        )
    text = _decoded(name, files[name], found)
    if text is None:
        return None, []
    if len(files[name]) > _MAX_KERNEL:
        found.add(f"larger than {_MAX_KERNEL} bytes", file=name, mend="Keep tables and data out of the kernel.")
        return None, []
    before = len(found.found)
    marked = markers.find(text, name, suffix_of(name), found)
    blocks = tuple(mark.block for mark in marked if mark.kind == "EVOLVE")
    if not blocks and len(found.found) == before:
        found.add(
            "there is no EVOLVE block",
            file=name,
            line=1,
            mend="Put `// [EVOLVE_START]` and `// [EVOLVE_END]` around what is replaced; it may be empty.",
        )
    kernel = KernelFile(path=name, text=text, blocks=blocks)
    entry = section.text("entry", "solve")
    if blocks and interface.is_name(entry) and not kernel.is_empty and not re.search(rf"\b{entry}\b", text):
        found.add(
            f"the kernel has no function {entry}",
            file=name,
            line=1,
            mend=(
                f"Define a kernel {entry}"
                if toolchain is not None and toolchain.device_form
                else f'Define `extern "C" int {entry}(...)`'
            )
            + ", or set `entry` in config.yaml.",
        )
    return kernel, marked


def _check_plan(
    kernel: KernelFile,
    toolchain: Toolchain,
    section: Section,
    parameters: tuple[Parameter, ...],
    cases: tuple[Case, ...],
    found: Problems,
) -> None:
    """Whether the launch plan can be read, starts the entry, and has values in bounds for every case."""
    # Half an interface or a case without its sizes is complained about already.
    whole = not found.found
    try:
        if not launchplan.in_device_form(toolchain.name, kernel.text):
            return
        plan = launchplan.parse(kernel.text, parameters, toolchain.name)
        entry = section.text("entry", "solve")
        if entry not in {launch.kernel for launch in plan.launches}:
            found.add(
                f"the launch plan does not start {entry}",
                file=kernel.path,
                line=plan.launches[0].line,
                mend=f"Launch a kernel {entry}, or set `entry` in config.yaml to one that is launched.",
            )
        for case in cases if whole else ():
            bind(plan, dict(case.sizes), {}, interface.memory_bytes(section))
    except PlanError as error:
        for problem in error.problems if whole else ():
            found.add(problem.text, file=kernel.path, line=problem.line, mend=problem.mend)


def _tolerance(section: Section) -> Tolerance:
    base = TOLERANCES[section.text("class", "fp32")]
    return replace(
        base,
        tau=float(section.number("tau", base.tau)),
        a=float(section.number("a", base.a)),
        b=float(section.number("b", base.b)),
    )


def _prose(
    files: Mapping[str, bytes],
    kernel: KernelFile | None,
    kernel_marks: list[Marked],
    module: TaskModule | None,
    found: Problems,
) -> tuple[str, str]:
    """Reference text and user's instructions, from markers in task.py, reference.* and the kernel file."""
    parts: dict[str, list[str]] = {"REFERENCE": [], "USER_INSTRUCTIONS": []}
    kernel_name = kernel.path if kernel is not None else ""
    for name in sorted(files):
        if name == kernel_name and kernel is not None:
            text, marked = kernel.text, kernel_marks
        elif name == pytask.FILE or re.fullmatch(r"reference\.[A-Za-z0-9]+|instructions\.(md|txt)", name):
            text = (_decoded(name, files[name], Problems() if name == pytask.FILE else found) or "").removeprefix(
                "\ufeff"
            )
            marked = markers.find(text, name, suffix_of(name), found)
            if any(mark.kind == "EVOLVE" for mark in marked):
                found.add(
                    "an EVOLVE block outside the kernel file",
                    file=name,
                    line=next(mark.line for mark in marked if mark.kind == "EVOLVE"),
                    mend="Move it into the file that `kernel` names.",
                )
        else:
            continue
        for mark in marked:
            if mark.kind in parts:
                parts[mark.kind].append(text[mark.block.start : mark.block.end].strip("\r\n"))
    reference = "\n\n".join(parts["REFERENCE"])
    if not reference and module is not None and "reference" in module.functions:
        reference = module.functions["reference"].source
    instructions = "\n\n".join(_uncommented(part) for part in parts["USER_INSTRUCTIONS"])
    for what, text in (("reference", reference), ("user instructions", instructions)):
        if len(text) > _MAX_PROSE:
            found.add(f"the {what} are longer than {_MAX_PROSE} characters", file=pytask.FILE, mend="Shorten them.")
    return reference, instructions


def _uncommented(text: str) -> str:
    """Instructions without the comment signs they were written behind."""
    lines = [re.sub(r"^\s*(?://+|#+|\*(?!\*))\s?", "", line).rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip()
