"""The meta-prompter: what it is told about a prompt variant, and what its answer changes.

It is told the truth (the release tells it "incorrect" whatever happened): each child's verdict, its gain, its speedups
with their intervals, what it changed, and what compilers and checks said. Its answer is SEARCH/REPLACE inside named
regions; whatever is not clearly that changes nothing. Pure; texts of children are strangers' and quoted as such.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kfd.core.search.prompt_archive import MAX_REGION, Edit, EditError, Region, Variant, mutated
from kfd.prompting import answers, edits, quoting, regions, tokens
from kfd.prompting.render import Prompt, PromptTooLong, template

__all__ = ["MAX_CHILDREN", "Child", "MetaRequest", "changed", "diff_of", "prompt", "read_edits"]

MAX_CHILDREN = 6
"""Children that are shown whole."""

_DIFF_LINES, _DIFF_WIDTH, _DIFF_CAP = 400, 300, 4000
_TEXT_CAP = 800
_MESSAGES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A kernel that was asked for with the variant, and what became of it. Lines are ready for people."""

    candidate: str
    operator: str
    outcome: str
    """Verdict code, or why the answer held no kernel."""
    fitness: float
    parent_fitness: float
    gain: float
    """What it counts for its prompt: never negative, and little for a repair, whose parent was a failure."""
    text: str = ""
    speeds: tuple[str, ...] = ()
    """One line for each baseline: value, interval, count."""
    cases: tuple[str, ...] = ()
    """Those that failed."""
    diagnostics: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    """What the compiler told of it, and what limits it."""
    diff: str = ""
    """Unified diff from the parent; empty when there is no kernel, or no parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaRequest:
    """Everything that the meta-prompter may be told. Equal requests give equal prompts."""

    name: str
    description: str
    toolchain: str
    target: str
    device_form: bool
    baseline: str
    target_speedup: float
    regions: tuple[tuple[Region, str], ...]
    pinned: tuple[Region, ...] = ()
    edits: int = 3
    """Edits in one answer, at most."""
    children: int = 0
    """Children that the credit rests on."""
    credit: float = 0.0
    mean: float = 0.0
    counts: tuple[tuple[str, int], ...] = ()
    """(verdict or reason, number) over all children."""
    last: tuple[Child, ...] = ()
    """The last children, newest first."""
    max_tokens: int | None = None
    """Tokens that both messages together may have at most; None where no model's window is known."""


def prompt(request: MetaRequest) -> Prompt:
    """The question to the meta-prompter; children are left out, the oldest first, until it fits.

    Raises PromptTooLong when it does not fit without any, ValueError when every region is pinned.
    """
    while True:
        made = _prompt(request)
        if request.max_tokens is None or tokens.fits((made.system, made.user), request.max_tokens):
            return made
        if not request.last:
            raise PromptTooLong(tokens.conversation_tokens((made.system, made.user)), request.max_tokens)
        request = replace(request, last=request.last[:-1])


def _prompt(request: MetaRequest) -> Prompt:
    texts = dict(request.regions)
    free = [region for region in Region if region not in request.pinned]
    if not free:
        raise ValueError("every region is pinned: there is nothing to ask for")
    user = template("meta_user.j2").render(
        name=quoting.one_line(request.name, 64),
        description=quoting.one_line(request.description, 2000),
        toolchain=request.toolchain,
        device_form=request.device_form,
        target=quoting.one_line(request.target, 64),
        baseline="reference" if request.baseline == "reference" else "initial kernel",
        target_speedup=f"{request.target_speedup:g}",
        regions=[
            {
                "name": region.value,
                "pinned": region in request.pinned,
                "text": quoting.fence(regions.region_text(texts.get(region, "")), MAX_REGION)
                if texts.get(region, "").strip()
                else "(empty)",
            }
            for region in Region
        ],
        children=request.children,
        credit=f"{request.credit:.4f}",
        mean=f"{request.mean:.4f}",
        counts=", ".join(f"{quoting.one_line(what, 40)} {number}" for what, number in request.counts[:20]),
        last=[_shown(child) for child in request.last[:MAX_CHILDREN]],
        edits=request.edits,
        example=(Region.STRATEGIES if Region.STRATEGIES in free else free[0]).value,
    )
    system = template("meta_system.j2").render(max_region=MAX_REGION)
    return Prompt(system.strip() + "\n", user.strip() + "\n")


def _shown(child: Child) -> dict[str, object]:
    """A child made harmless."""
    counted = f"counts as a gain of {child.gain:.4f}" if child.gain > 0 else "no gain"
    return {
        "candidate": quoting.one_line(child.candidate, 64),
        "operator": quoting.one_line(child.operator, 32),
        "outcome": quoting.one_line(child.outcome, 64),
        "change": f"fitness {child.fitness:.4f}, its parent {child.parent_fitness:.4f}: {counted}",
        "speeds": quoting.lines(child.speeds, 4),
        "cases": quoting.lines(child.cases, _MESSAGES),
        "diagnostics": quoting.lines(child.diagnostics, _MESSAGES),
        "facts": quoting.lines(child.facts, _MESSAGES),
        "text": quoting.fence(child.text, _TEXT_CAP) if child.text.strip() else "",
        "diff": quoting.fence(child.diff, _DIFF_CAP, "diff") if child.diff else "",
    }


def diff_of(parent: str, child: str) -> str:
    """What a child changed: a unified diff of at most 400 lines of each, cut at 4000 characters."""
    before, after = (
        [line[:_DIFF_WIDTH] for line in quoting.clean(text, 100_000).split("\n")[:_DIFF_LINES]]
        for text in (parent, child)
    )
    made = "\n".join(difflib.unified_diff(before, after, "parent", "child", n=2, lineterm=""))
    return made if len(made) <= _DIFF_CAP - 20 else f"{made[: _DIFF_CAP - 20]}\n... (cut)"


# ---- the answer -----------------------------------------------------------------------------------------------------

_NAMED = re.compile(
    r"^[ \t>]{0,8}(?:#{1,6}[ \t]*|[-*][ \t]+)?(?:region\b[:\s]*)?[`*_\"]{0,3}(\w{1,40})[`*_\":]{0,4}[ \t]*$", re.I
)
_HEADING = re.compile(r"^[ \t>]{0,8}#{1,6}[ \t]*[`*_\"]{0,3}(\w{1,40})")
_BEHIND = re.compile(r"SEARCH[ \t:(\[`*-]+(\w{1,40})", re.I)


def changed(text: str, finish_reason: str, parent: Variant, pinned: tuple[Region, ...], most: int) -> Variant:
    """The variant that an answer makes of its parent. Raises EditError with the reason when it makes none."""
    early = answers.unusable(text, finish_reason)
    if early is not None:
        raise EditError(early.detail)
    plain = answers.after_thinking(text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff"))
    if plain is None:
        raise EditError("the model never finished thinking")
    found = read_edits(plain)
    if len(found) > most:
        raise EditError(f"{len(found)} edits were given; at most {most} are allowed")
    raw = mutated(parent, found, pinned)
    return mutated(parent, _cleaned(raw.regions, parent.regions), pinned)


def _cleaned(made: Mapping[Region, str], before: Mapping[Region, str]) -> list[Edit]:
    """Whole regions as edits, their new texts harmless."""
    return [
        Edit(region=region, search=before.get(region, ""), replace=regions.region_text(text))
        for region, text in made.items()
        if text != before.get(region, "")
    ]


def read_edits(text: str) -> list[Edit]:
    """Edits of an answer (line feeds only), each with the region that it names, in order; a name holds for the edits
    below it until another one comes. Raises EditError for an edit that is cut off, or names no region that there is."""
    found: list[Edit] = []
    named = ""
    search: list[str] = []
    replace: list[str] = []
    part = "outside"
    for line in text.split("\n"):
        if edits.SEARCH_LINE.match(line):
            if part != "outside":
                raise EditError(f"edit {len(found) + 1} begins again before it ends")
            behind = _BEHIND.search(line)
            named = behind[1] if behind else named
            part, search, replace = "search", [], []
        elif part == "search" and edits.MIDDLE_LINE.match(line):
            part = "replace"
        elif part == "replace" and edits.REPLACE_LINE.match(line):
            found.append(_edit(len(found) + 1, named, search, replace))
            part = "outside"
        elif part == "outside":
            named = _name(line) or named
        else:
            (search if part == "search" else replace).append(line)
        if len(found) > edits.MAX_EDITS:
            raise EditError(f"more than {edits.MAX_EDITS} edits in one answer")
    if part != "outside":
        raise EditError(f"edit {len(found) + 1} is not finished: the answer was cut off")
    return found


def _name(line: str) -> str:
    """What a line between edits names: a region, or whatever a heading says; else nothing."""
    match = _NAMED.match(line)
    if match and match[1].lower() in {region.value for region in Region}:
        return match[1]
    heading = _HEADING.match(line)
    return heading[1] if heading else ""


def _edit(number: int, named: str, search: list[str], replace: list[str]) -> Edit:
    names = [region.value for region in Region]
    if named.lower() not in names:
        what = f"names the region {named!r}" if named else "names no region"
        raise EditError(f"edit {number} {what}; there are {', '.join(names)}")
    return Edit(region=Region(named.lower()), search=_joined(search), replace=_joined(replace))


def _joined(lines: list[str]) -> str:
    return "\n".join(line.rstrip() for line in edits.unfenced(lines)).strip("\n")
