"""Markers in comments: ``[EVOLVE_START]`` ... ``[EVOLVE_END]`` and their kin, in any language.

A block's contents are the whole lines between the two marker lines. Half a pair, nesting, a marker outside a
comment and a misspelt one are errors: a lone end marker must never put the whole file inside the block (peer
faults, F12).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kfd.tasks.report import Problems
from kfd.tasks.spec import Block

__all__ = ["C_FAMILY", "MARKER", "Marked", "find", "markers_in"]

MARKER = re.compile(r"\[(EVOLVE|REFERENCE|USER_INSTRUCTIONS)_(START|END)\]")
_ALMOST = re.compile(
    r"[\[(<{]\s*(EVOLVE|REFERENCE|USER[ _-]?INSTRUCTIONS?)[ _-]*(START|BEGIN|END|STOP)\s*[\])>}]", re.I
)
_EVOLVE_BLOCK = re.compile(r"EVOLVE-BLOCK-(START|END)")
C_FAMILY = frozenset((".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".cl", ".sycl", ".hip"))
_OPENERS = {True: ("//", "/*"), False: ("#", "//", "/*", "--", ";", "%", "<!--", "(*")}
_MAX_BLOCKS = 32


@dataclass(frozen=True, slots=True)
class Marked:
    """Blocks of one kind, as character offsets of their contents, with the 1-based line of the start
    marker."""

    kind: str
    block: Block
    line: int


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    start: int
    end: int
    """After the line break."""
    text: str


def _lines(text: str) -> Iterator[_Line]:
    at, number = 0, 1
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield _Line(number, at, end, text[at:end])
        at, number = end, number + 1


def markers_in(text: str) -> bool:
    """Whether any marker, even a misspelt one, occurs: no answer of a model may hold one."""
    return bool(MARKER.search(text) or _ALMOST.search(text) or _EVOLVE_BLOCK.search(text))


def find(text: str, file: str, suffix: str, problems: Problems) -> list[Marked]:
    """All marked blocks of a file, in order; each thing wrong with them goes to ``problems``."""
    found: list[Marked] = []
    opened: tuple[str, _Line] | None = None
    for line in _lines(text):
        marks = list(MARKER.finditer(line.text))
        if not marks:
            _check_spelling(line, file, problems)
            continue
        if len(marks) > 1:
            problems.add("two markers on one line", file=file, line=line.number, mend="Give each its own line.")
            continue
        kind, edge = marks[0].group(1), marks[0].group(2)
        _check_comment(line, marks[0].start(), marks[0].end(), kind, edge, suffix, file, problems)
        if edge == "START":
            if opened is not None:
                problems.add(
                    f"[{kind}_START] inside the block [{opened[0]}_START] of line {opened[1].number}",
                    file=file,
                    line=line.number,
                    mend=f"Close it with [{opened[0]}_END] first; blocks do not nest.",
                )
            opened = (kind, line)
        elif opened is None or opened[0] != kind:
            problems.add(
                f"[{kind}_END] without [{kind}_START]",
                file=file,
                line=line.number,
                mend=f"Put [{kind}_START] in a comment of its own above the block.",
            )
            opened = None
        else:
            found.append(Marked(kind, Block(start=opened[1].end, end=line.start), opened[1].number))
            opened = None
    if opened is not None:
        problems.add(
            f"[{opened[0]}_START] is never closed",
            file=file,
            line=opened[1].number,
            mend=f"Put [{opened[0]}_END] in a comment of its own below the block.",
        )
    if len(found) > _MAX_BLOCKS:
        problems.add(f"more than {_MAX_BLOCKS} blocks", file=file, line=found[-1].line, mend="Join some of them.")
    return found


def _check_spelling(line: _Line, file: str, problems: Problems) -> None:
    match = _ALMOST.search(line.text) or _EVOLVE_BLOCK.search(line.text)
    if match:
        problems.add(
            f"{match.group(0)!r} looks like a marker but is none",
            file=file,
            line=line.number,
            mend="Write [EVOLVE_START], [EVOLVE_END], [REFERENCE_START], ... exactly.",
        )


def _check_comment(
    line: _Line, start: int, end: int, kind: str, edge: str, suffix: str, file: str, problems: Problems
) -> None:
    """Only EVOLVE blocks are replaced, so only their markers must stand where replacing is safe."""
    if kind != "EVOLVE":
        return
    before, after = line.text[:start], line.text[end:].rstrip("\r\n")
    openers = _OPENERS[suffix in C_FAMILY]
    opener = max(openers, key=before.rfind)
    why = mend = ""
    if opener not in before:
        why = f"[{kind}_{edge}] is not inside a comment"
        mend = "Put it into a comment of the kernel's language, such as `// [EVOLVE_START]`."
    elif opener == "/*" and "*/" not in after:
        # The comment's end would be the block's first line, and go when the block is replaced.
        why = f"the comment around [{kind}_{edge}] does not end on its line"
        mend = "Close it on the same line: `/* [EVOLVE_START] */`."
    elif (opener == "/*" and after.split("*/", 1)[1].strip()) or before[: before.find(opener)].strip():
        why = f"code on the line of [{kind}_{edge}]"
        mend = "Give the marker a line of its own; whole lines between the markers are replaced."
    elif after.endswith("\\"):
        why = f"a backslash at the end of the line of [{kind}_{edge}] continues its comment"
        mend = "Take the backslash away."
    if why:
        problems.add(why, file=file, line=line.number, mend=mend)
