"""Reading Python as text: comments and literals told from code, in one pass, as ``lexing`` does for C.

Triton kernels are Python that is never run here. Every alternative consumes what it has looked at, closed or not,
so hostile text costs linear time.
"""

from __future__ import annotations

import re

__all__ = ["code_only", "defines", "open_end", "stream"]

_PREFIX = r"(?:(?<!\w)[A-Za-z]{1,2}(?=[\"']))?"
_TRIPLE = r"(?P<t>\"\"\"|''')(?:(?:[^\\]|\\.)*?(?P=t)|.*)"
_PLAIN = r"\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?"
_STRING = rf"{_PREFIX}(?:{_TRIPLE}|{_PLAIN})"
_COMMENT = r"\#[^\n]*+"
_NUMBER = r"\.?\d(?:[eE][+-]|[\w.])*+"
_MARK = r"\*\*=|//=|>>=|<<=|\.\.\.|->|:=|\*\*|//|>>|<<|[-+*/%&|^@=<>!]=|\S"
_JOINED = r"\\\r?\n"

_NOT_CODE = re.compile(rf"(?P<comment>{_COMMENT})|(?P<text>{_STRING})", re.S)
_STREAM = re.compile(
    rf"(?P<space>(?:[ \t\r\f\v]|{_JOINED}|{_COMMENT})++)|(?P<piece>\n|{_STRING}|[^\W\d]\w*+|{_NUMBER}|{_MARK})", re.S
)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_TAB = 8
"""Columns between tab stops, as Python counts indentation."""


def stream(text: str) -> list[str]:
    """Tokens without comments and spacing; lines end as a line feed, indentation as ``>`` or ``<`` and a line feed.

    A line inside brackets, one continued by a backslash and a blank one end nothing, as in Python.
    """
    pieces: list[str] = []
    columns = [0]
    depth = column = 0
    fresh = True
    for match in _STREAM.finditer(text):
        piece = match["piece"]
        if piece is None:
            if fresh and not depth:
                column = _column(match["space"], column)
            continue
        if piece == "\n":
            if not depth:
                if not fresh:
                    pieces.append(piece)
                fresh, column = True, 0
            continue
        if fresh and not depth:
            pieces += _indents(columns, column)
            fresh = False
        depth = max(0, depth + (piece in _OPENING) - (piece in _CLOSING))
        pieces.append(piece)
    if pieces and pieces[-1] != "\n":
        pieces.append("\n")
    return pieces


def _column(space: str, column: int) -> int:
    for character in space.partition("#")[0].partition("\\")[0]:
        column = column - column % _TAB + _TAB if character == "\t" else column + 1
    return column


def _indents(columns: list[int], column: int) -> list[str]:
    """What a line at this column opens or closes; ``columns`` is brought up to it."""
    if column > columns[-1]:
        columns.append(column)
        return [">\n"]
    made: list[str] = []
    while column < columns[-1]:
        columns.pop()
        made.append("<\n")
    return made


def _blank(match: re.Match[str]) -> str:
    return " " if match["text"] is None else '""' + "\n" * match[0].count("\n")


def code_only(text: str) -> str:
    """The text with comments and literals blanked; lines keep their numbers."""
    return _NOT_CODE.sub(_blank, text)


def defines(text: str, entry: str) -> bool:
    """Whether code, not a comment or a literal, defines a function of this name."""
    return re.search(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{re.escape(entry)}[ \t]*\(", code_only(text), re.M) is not None


def open_end(text: str) -> str:
    """What a text ends inside of, so that it would swallow what follows it; empty when it is closed.

    A string in triple quotes, brackets, or a continued line.
    """
    for match in _NOT_CODE.finditer(text):
        triple = match["t"]
        if triple is not None:
            body = match[0][match[0].index(triple) + len(triple) :]
            if not body.endswith(triple) or re.fullmatch(r"(?:[^\\]|\\.)*", body[: -len(triple)], re.S) is None:
                return "a string"
    code = code_only(text)
    if code.rstrip("\r\n").endswith("\\"):
        return "a line continued by a backslash"
    depth = 0
    for mark in re.findall(r"[()\[\]{}]", code):
        depth = max(0, depth + (1 if mark in _OPENING else -1))
    return "brackets" if depth else ""
