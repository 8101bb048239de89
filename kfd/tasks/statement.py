"""Statements of the launch plan as words and bracketed lists, before anybody asks what they mean.

``launch softmax grid(ceildiv(rows, 4), 1) block(64) args(x, y)`` becomes the head ``launch softmax`` and the clauses
``grid``, ``block`` and ``args`` with the texts between their commas. Pure, linear in the text, bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Clause", "Statement", "StatementError", "read", "split"]

MAX_ITEMS = 64
"""Items of one list."""

_WORD = re.compile(r"[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*", re.A)


class StatementError(ValueError):
    """The text is no statement; the message says where it stops being one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One bracketed list with its word."""

    word: str
    items: tuple[str, ...]
    """Texts between the commas, stripped; empty for ``word()``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement: words, then clauses."""

    words: tuple[str, ...]
    clauses: tuple[Clause, ...]


def read(text: str) -> Statement:
    """Take a statement apart. Raises StatementError."""
    words: list[str] = []
    clauses: list[Clause] = []
    at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise StatementError(f"unexpected `{text[at:].strip()[:20]}`")
        at = match.end()
        if text[at : at + 1] != "(":
            if clauses:
                raise StatementError(f"`{match[1]}` needs a list in brackets")
            words.append(match[1])
            continue
        end = _closing(text, at, match[1])
        clauses.append(Clause(word=match[1], items=split(text[at + 1 : end])))
        at = end + 1
        if text[at:].strip() == "":
            break
    return Statement(words=tuple(words), clauses=tuple(clauses))


def _closing(text: str, opening: int, word: str) -> int:
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    raise StatementError(f"the bracket of `{word}(` is never closed")


def split(text: str) -> tuple[str, ...]:
    """Texts between the commas that stand in no bracket. Raises StatementError for an empty or surplus item."""
    if not text.strip():
        return ()
    items: list[str] = []
    depth = start = 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            items.append(text[start:at].strip())
            start = at + 1
    items.append(text[start:].strip())
    if not all(items):
        raise StatementError("there is nothing between two commas")
    if len(items) > MAX_ITEMS:
        raise StatementError(f"a list of {len(items)} items; {MAX_ITEMS} are possible")
    return tuple(items)
