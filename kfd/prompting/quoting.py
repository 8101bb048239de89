"""Making strangers' text harmless before a model reads it: compilers, candidates, task authors.

Nothing quoted can end its fence, imitate our markers or edit signs, or hide characters. The model has no
tools and no authority, so the worst that is left is bad advice inside a fence that is announced as output.
"""

from __future__ import annotations

import re

from kfd.base.plain import plain

__all__ = ["clean", "fence", "harmless", "lines", "one_line"]

_SIGNS = re.compile(r"<{5,}|>{5,}|^={5,}[ \t]*$", re.M)
_MARKERS = re.compile(r"\[\s*(EVOLVE|REFERENCE|USER[ _-]?INSTRUCTIONS?)[ _-]*(START|END)\s*\]", re.I)


def clean(text: str, cap: int) -> str:
    """Text without escape sequences, control and invisible characters, at most ``cap`` characters of it."""
    cut = plain(text[: cap * 2])
    if len(cut) > cap or len(text) > cap * 2:
        cut = f"{cut[:cap]}\n... ({len(text)} characters in all)"
    return cut


def _defused(text: str) -> str:
    text = _MARKERS.sub(lambda match: f"({match[1]} {match[2]})".upper(), text)
    return _SIGNS.sub(lambda match: " ".join(match[0].strip()), text)


def harmless(text: str, cap: int) -> str:
    """Clean text whose markers and signs of edits are broken up: for running text that is not quoted in a fence."""
    return _defused(clean(text, cap))


def one_line(text: str, cap: int = 300) -> str:
    """One harmless line for running text: no line ends, no fences, no signs."""
    return _defused(" ".join(clean(text, cap).split())).replace("```", "'''").replace("~~~", "'''")


def lines(items: tuple[str, ...], count: int, cap: int = 300) -> list[str]:
    """At most ``count`` harmless lines, and a note about the others."""
    shown = [one_line(item, cap) for item in items[:count]]
    return [*shown, f"(and {len(items) - count} more)"] if len(items) > count else shown


def fence(text: str, cap: int, tag: str = "text", *, trusted: bool = False) -> str:
    """Text in a fence that it cannot close. ``trusted`` text is code that must be quoted to the letter."""
    text = text.replace("\r\n", "\n")[:cap] if trusted else _defused(clean(text, cap))
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{tag}\n{text.rstrip(chr(10))}\n{ticks}"
