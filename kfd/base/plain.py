"""Strangers' text made plain: no escape sequences, no control characters, nothing invisible.

For terminals, prompts and logs alike: what a model, a compiler or a task says must not move a cursor, set a
title, hide a word or turn a line around.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["plain", "plain_line"]

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[P^_X][^\x1b]{0,4096}(?:\x1b\\)?"
    r"|\x1b\[[0-?]*[ -/]*[@-~]?|\x1b.?|\x9b[0-?]*[ -/]*[@-~]?",
    re.S,
)
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def plain(text: str) -> str:
    """Text with line feeds and tabs, and otherwise only what can be seen."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c for c in text if c in "\n\t" or (c.isprintable() and unicodedata.category(c) not in _HIDDEN))


def plain_line(text: str, cap: int = 300) -> str:
    """One such line of at most ``cap`` characters; what is cut off is marked by three dots."""
    line = " ".join(plain(text[: cap * 4]).split())
    return line if len(line) <= cap else f"{line[: max(cap - 3, 0)]}..."
