"""Reading what nvcc, its front end, ptxas and the host compiler say. Pure and bounded, as ``gcc_messages``."""

from __future__ import annotations

import re

from kfd.base.work import Diagnostic
from kfd_worker.toolchains import gcc_messages
from kfd_worker.toolchains.gcc_messages import MAX_MESSAGES

__all__ = ["parse_messages"]

_MAX_TEXT = 600
_ORDER = {"fatal error": 0, "error": 0, "warning": 1, "note": 2}

_FRONT_END = re.compile(
    r"(?P<file>[^(\n]{1,200})\((?P<line>\d{1,9})\): "
    r"(?P<severity>catastrophic error|internal error|error|warning|remark)(?: #\d{1,6}(?:-D)?)?: (?P<text>.*)"
)
_PTXAS_LINE = re.compile(
    r"ptxas \S{1,300}, line (?P<line>\d{1,9}); (?P<severity>error|fatal|warning)\s{0,8}: (?P<text>.*)"
)
_TOOL = re.compile(
    r"(?P<tool>ptxas|nvcc|nvlink|cicc|fatbinary|nvrtc)\s{1,4}(?P<severity>error|fatal|warning)\s{0,8}: (?P<text>.*)"
)
_SEVERITY = {
    "catastrophic error": "fatal error",
    "internal error": "fatal error",
    "fatal": "fatal error",
    "remark": "note",
}


def parse_messages(text: str, *, box_path: str, kernel_path: str, limit: int = MAX_MESSAGES) -> tuple[Diagnostic, ...]:
    """Messages in the order of the compiler, errors kept before the rest when there are too many.

    ``box_path`` (where the source lay in the box) is replaced by ``kernel_path`` in files and texts. A message of
    ptxas has no line of the source (its lines are of a file that is gone): line 0.
    """
    found: list[Diagnostic] = []
    for raw in text.replace(box_path, kernel_path).split("\n"):
        # A flood of a million messages is not read to its end.
        if len(found) >= 50 * limit:
            break
        one = _parse_line(raw, kernel_path)
        if one is not None and one not in found[-5:]:
            found.append(one)
    if len(found) > limit:
        ranked = sorted(range(len(found)), key=lambda index: (_ORDER.get(found[index].severity, 0), index))
        found = [found[index] for index in sorted(ranked[:limit])]
    return tuple(found)


def _parse_line(raw: str, kernel_path: str) -> Diagnostic | None:
    match = _FRONT_END.match(raw)
    if match:
        return _made(match["file"], int(match["line"]), match["severity"], match["text"])
    match = _PTXAS_LINE.match(raw)
    if match:
        return _made(kernel_path, 0, match["severity"], f"ptxas: {match['text']} (line {match['line']} of the PTX)")
    match = _TOOL.match(raw)
    if match:
        file = kernel_path if match["tool"] in ("ptxas", "cicc") else ""
        return _made(file, 0, match["severity"], f"{match['tool']}: {match['text']}")
    # The preprocessor and the host compiler are g++, and the linker of the host form is ld.
    host = gcc_messages.parse_messages(raw, box_path="\0", kernel_path="\0", limit=1)
    return host[0] if host else None


def _made(file: str, line: int, severity: str, text: str) -> Diagnostic:
    return Diagnostic(file=file, line=line, column=0, severity=_SEVERITY.get(severity, severity), text=text[:_MAX_TEXT])
