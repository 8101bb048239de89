"""Reading what g++ and the linker say. Pure, bounded, and made for messages that were written to annoy."""

from __future__ import annotations

import re

from kfd.base.work import Diagnostic

__all__ = ["MAX_MESSAGES", "parse_messages"]

MAX_MESSAGES = 20
_MAX_TEXT = 600
_ORDER = {"fatal error": 0, "error": 0, "warning": 1, "note": 2}

_LINE = re.compile(
    r"(?P<file>[^:\n]{1,200}):(?P<line>\d{1,9}):(?:(?P<column>\d{1,9}):)? "
    r"(?P<severity>fatal error|error|warning|note): (?P<text>.*)"
)
_LINKER = re.compile(
    r"(?:/\S*/)?(?:ld|collect2|g\+\+|cc1plus|as)(?:\.\w+)?: (?:(?P<severity>fatal error|error): )?(?P<text>.*)"
)
_UNDEFINED = re.compile(r"(?:\S+: )?(?:in function .*: ?|\S*:\(\.\S+\): )(?P<text>undefined reference to .*)")


def parse_messages(text: str, *, box_path: str, kernel_path: str, limit: int = MAX_MESSAGES) -> tuple[Diagnostic, ...]:
    """Messages in the order of the compiler, errors kept before notes when there are too many.

    ``box_path`` (where the source lay in the box) is replaced by ``kernel_path`` in files and texts.
    """
    found: list[Diagnostic] = []
    for raw in text.replace(box_path, kernel_path).split("\n"):
        # A flood of a million messages is not read to its end.
        if len(found) >= 50 * limit:
            break
        one = _parse_line(raw)
        if one is not None and one not in found[-5:]:
            found.append(one)
    if len(found) > limit:
        ranked = sorted(range(len(found)), key=lambda index: (_ORDER.get(found[index].severity, 0), index))
        found = [found[index] for index in sorted(ranked[:limit])]
    return tuple(found)


def _parse_line(raw: str) -> Diagnostic | None:
    match = _LINE.match(raw)
    if match:
        return Diagnostic(
            file=match["file"],
            line=int(match["line"]),
            column=int(match["column"] or 0),
            severity=match["severity"],
            text=match["text"][:_MAX_TEXT],
        )
    match = _UNDEFINED.match(raw) or _LINKER.match(raw)
    if match and match["text"] and not match["text"].startswith("ld returned"):
        return Diagnostic(file="", line=0, column=0, severity="error", text=match["text"][:_MAX_TEXT])
    return None
