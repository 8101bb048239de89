"""Fenced code blocks in the text of a model: backticks or tildes, any tag, indented, CRLF, closed or not."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Fenced", "fenced", "prose"]

_FENCE = re.compile(r"^([ \t]{0,64}(?:>[ \t]{0,4}){0,3})(`{3,}|~{3,})[ \t]*([^\n]*)$")
_LANGUAGES = frozenset(
    ("c", "cc", "cpp", "c++", "cxx", "cuda", "cu", "hip", "sycl", "opencl", "cl", "h", "hpp", "py", "python", "triton")
)


@dataclass(frozen=True, slots=True)
class Fenced:
    """One block: its tag and its content, each line ended by a line feed."""

    tag: str
    text: str


def fenced(text: str) -> tuple[list[Fenced], bool]:
    """Blocks of a text (line feeds only), in order, and whether one of them is never closed."""
    found, _, is_open = _split(text)
    return found, is_open


def prose(text: str) -> str:
    """What stands outside the blocks of a text (line feeds only); nothing from a block that is never closed."""
    return _split(text)[1]


def _split(text: str) -> tuple[list[Fenced], str, bool]:
    found: list[Fenced] = []
    lines: list[str] = []
    outside: list[str] = []
    fence, indent, tag = "", "", ""
    for line in text.split("\n"):
        match = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if not fence:
            if match and not (match.group(2)[0] == "`" and "`" in match.group(3)):
                indent, fence, tag = match.group(1), match.group(2), match.group(3).strip()
                lines = []
            else:
                outside.append(line)
            continue
        if match and match.group(2).startswith(fence):
            if not match.group(3).strip():
                found.append(Fenced(tag, _content(lines, tag)))
                fence = ""
                continue
            # A second opening inside an open block: the first was never closed.
            return found, "\n".join(outside), True
        lines.append(_without(line, indent))
    return found, "\n".join(outside), bool(fence)


def _without(line: str, indent: str) -> str:
    """A line without as much of the fence's own indentation as it has."""
    if line.startswith(indent):
        return line[len(indent) :]
    at = 0
    while at < min(len(line), len(indent)) and line[at] in " \t>":
        at += 1
    return line[at:]


def _content(lines: list[str], tag: str) -> str:
    """Content without a tag that slipped onto the first line."""
    if lines and not tag and lines[0].strip().lower() in _LANGUAGES:
        lines = lines[1:]
    return "".join(f"{line}\n" for line in lines)
