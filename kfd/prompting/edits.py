"""SEARCH/REPLACE edits: reading them out of an answer and applying them inside the EVOLVE blocks.

A search text must be whole lines that occur exactly once inside the blocks: first as written, then with
trailing blanks and line ends ignored. What matches nothing is refused with the nearest lines; it never
leaves the parent unchanged and calls it a child (peer faults, F06, F07, F09, F11).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kfd.prompting.rejection import Rejected, RejectReason

__all__ = ["MAX_EDITS", "MIDDLE_LINE", "REPLACE_LINE", "SEARCH_LINE", "Edit", "apply", "read_edits", "unfenced"]

MAX_EDITS = 64

SEARCH_LINE = re.compile(r"^[ \t>]{0,64}<{5,9}[ \t]*SEARCH\b[^\n]{0,80}$")
MIDDLE_LINE = re.compile(r"^[ \t>]{0,64}={5,9}[ \t]*$")
REPLACE_LINE = re.compile(r"^[ \t>]{0,64}>{5,9}[ \t]*REPLACE\b[^\n]{0,80}$")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace these lines by those."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


def read_edits(text: str) -> list[Edit] | Rejected:
    """Edits of an answer (line feeds only), in order; empty when there are none."""
    edits: list[Edit] = []
    search: list[str] = []
    replace: list[str] = []
    part = "outside"
    for line in text.split("\n"):
        if SEARCH_LINE.match(line):
            if part != "outside":
                return Rejected(RejectReason.TRUNCATED, f"edit {len(edits) + 1} begins again before it ends")
            part, search, replace = "search", [], []
        elif part == "search" and MIDDLE_LINE.match(line):
            part = "replace"
        elif part == "replace" and REPLACE_LINE.match(line):
            edits.append(Edit(unfenced(search), unfenced(replace)))
            part = "outside"
        elif part == "search":
            search.append(line)
        elif part == "replace":
            replace.append(line)
        if len(edits) > MAX_EDITS:
            return Rejected(RejectReason.TOO_LONG, f"more than {MAX_EDITS} edits in one answer")
    if part != "outside":
        missing = "=======" if part == "search" else ">>>>>>> REPLACE"
        return Rejected(RejectReason.TRUNCATED, f"edit {len(edits) + 1} has no {missing} line")
    return edits


def unfenced(lines: list[str]) -> tuple[str, ...]:
    """Lines of one part of an edit without the fence that some models put around it."""
    if len(lines) >= 2 and _FENCE.match(lines[0]) and _FENCE.match(lines[-1]):
        lines = lines[1:-1]
    return tuple(lines)


def apply(edits: list[Edit], blocks: list[list[str]], outside: list[str]) -> list[list[str]] | Rejected:
    """Blocks, as lists of lines without line ends, after the edits, each applied to what the one before
    left."""
    for number, edit in enumerate(edits, 1):
        if not any(line.strip() for line in edit.search):
            if len(blocks) != 1 or any(line.strip() for line in blocks[0]):
                return Rejected(RejectReason.EDIT_AMBIGUOUS, f"edit {number} searches for nothing")
            blocks = [list(edit.replace)]
            continue
        place = _place(edit.search, blocks)
        if isinstance(place, int):
            return _refused(number, edit, place, blocks, outside)
        index, first, last = place
        blocks = [list(lines) for lines in blocks]
        blocks[index][first:last] = edit.replace
    return blocks


def _place(search: tuple[str, ...], blocks: list[list[str]]) -> tuple[int, int, int] | int:
    """(block, first line, line after the last) of the only match; else how many there are, 2 meaning
    several."""
    exact = list(search)
    loose = [line.rstrip() for line in search]
    while not loose[0]:
        loose.pop(0)
    while not loose[-1]:
        loose.pop()
    for wanted, normal in ((exact, False), (loose, True)):
        found: list[tuple[int, int, int]] = []
        for index, lines in enumerate(blocks):
            view = [line.rstrip() for line in lines] if normal else lines
            found += [(index, at, at + len(wanted)) for at in _matches(wanted, view)]
        if found:
            return found[0] if len(found) == 1 else 2
    return 0


def _matches(wanted: list[str], lines: list[str]) -> list[int]:
    """First lines of at most two matches. Searched as one string: that is linear where comparing lists is
    not."""
    haystack, needle = "\n" + "\n".join(lines) + "\n", "\n" + "\n".join(wanted) + "\n"
    found: list[int] = []
    at = haystack.find(needle)
    while at >= 0 and len(found) < 2:
        found.append(haystack.count("\n", 0, at))
        at = haystack.find(needle, at + 1)
    return found


def _refused(number: int, edit: Edit, count: int, blocks: list[list[str]], outside: list[str]) -> Rejected:
    if count:
        return Rejected(RejectReason.EDIT_AMBIGUOUS, f"the SEARCH text of edit {number} occurs more than once")
    loose = [line.rstrip() for line in edit.search if line.strip()]
    elsewhere = {line.rstrip() for line in outside}
    within = {line.rstrip() for lines in blocks for line in lines}
    if any(line in elsewhere and line not in within for line in loose):
        return Rejected(RejectReason.OUTSIDE_BLOCK, f"edit {number} touches fixed lines outside the EVOLVE block")
    near = _nearest(loose, [line for lines in blocks for line in lines])
    return Rejected(RejectReason.EDIT_UNMATCHED, f"the SEARCH text of edit {number} is not there; nearest:\n{near}")


def _nearest(search: list[str], lines: list[str]) -> str:
    """The lines most like the first lines of the search, by words in common: linear, unlike a diff."""
    words = {word for line in search[:3] for word in re.findall(r"\w+", line[:400])}
    scored = [(len(words & set(re.findall(r"\w+", line[:400]))), -at) for at, line in enumerate(lines[:20_000])]
    if not scored:
        return "(the block is empty)"
    first = max(0, -max(scored)[1] - 1)
    return "\n".join(line[:200] for line in lines[first : first + max(3, min(len(search), 8))])
