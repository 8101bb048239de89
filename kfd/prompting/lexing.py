"""Reading C++ as text: comments and literals told from code, in one pass.

Only as much as answers and normal forms need. Every alternative consumes what it has looked at, closed or
not, so hostile text (a million opened comments or quotes) costs linear time.
"""

from __future__ import annotations

import re

__all__ = ["blanked", "code_only", "defines", "open_end", "stream"]

_LINE_COMMENT = r"//(?:[^\n\\]|\\.|\\\Z)*+"
_BLOCK_COMMENT = r"/\*(?:.*?\*/|.*)"
_RAW = r'(?<!\w)(?:u8|[uUL])?R"(?P<d>[^ ()\\\t\v\f\n"]{0,16})\((?:.*?\)(?P=d)"|.*)'
_STRING = r'"(?:[^"\\\n]|\\.)*+"?'
# No literal begins inside a number: 1'000'000.
_CHARACTER = r"(?<!\w)(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*+'?"
_NUMBER = r"\.?\d(?:[eEpP][+-]|'?[\w.])*+"
_MARK = r"<<=|>>=|<=>|\.\.\.|->\*|::|->|\+\+|--|<<|>>|&&|\|\||[-+*/%&|^=<>!]=|##|\S"

_NOT_CODE = re.compile(rf"(?P<comment>{_LINE_COMMENT}|{_BLOCK_COMMENT})|(?P<text>{_RAW}|{_STRING}|{_CHARACTER})", re.S)
_STREAM = re.compile(
    rf"(?:[ \t\r\f\v]|\\\r?\n|{_LINE_COMMENT}|{_BLOCK_COMMENT})++"
    rf"|(\n|{_RAW}|(?:u8|[uUL])?{_STRING}|{_CHARACTER}|[^\W\d]\w*+|{_NUMBER}|{_MARK})",
    re.S,
)
_CONDITIONAL = re.compile(r"^[ \t]*(?:#|%:)[ \t]*(if|ifdef|ifndef|endif|else|elif)\b", re.M)


def stream(text: str) -> list[str]:
    """Tokens without comments and spacing; a line end stays where it ends a preprocessor directive."""
    pieces: list[str] = []
    fresh, directive = True, False
    for match in _STREAM.finditer(text):
        piece = match[1]
        if piece is None:
            continue
        if piece == "\n":
            if directive:
                pieces.append(piece)
            fresh, directive = True, False
            continue
        if fresh:
            directive = piece == "#"
            fresh = False
        pieces.append(piece)
    return pieces


def _blank(match: re.Match[str]) -> str:
    lines = "\n" * match[0].count("\n")
    return f'""{lines}' if match["comment"] is None else f" {lines}"


def blanked(source: bytes) -> bytes:
    """Source with every byte of comments and literals made a space: places stay what they were."""
    return _NOT_CODE.sub(lambda match: " " * len(match[0]), source.decode("latin-1")).encode("latin-1")


def code_only(text: str) -> str:
    """The text with comments and literals blanked; lines keep their numbers."""
    return _NOT_CODE.sub(_blank, text)


def defines(text: str, entry: str) -> bool:
    """Whether code, not a comment or a literal, has ``entry`` followed by an argument list."""
    return re.search(rf"\b{re.escape(entry)}\s*\(", code_only(text)) is not None


def open_end(text: str) -> str:
    """What a text ends inside of, so that it would swallow what follows it; empty when it is closed.

    A comment, a raw string, a continued line, or a conditional (``#if`` without ``#endif`` or the other way
    round).
    """
    for match in _NOT_CODE.finditer(text):
        piece = match[0]
        if piece.startswith("/*") and (len(piece) < 4 or not piece.endswith("*/")):
            return "a comment"
        if match["d"] is not None and not _raw_is_closed(piece, match["d"]):
            return "a string"
    if text.rstrip("\r\n").endswith("\\"):
        return "a line continued by a backslash"
    depth = 0
    for match in _CONDITIONAL.finditer(code_only(text)):
        word = match[1]
        if word.startswith("if"):
            depth += 1
        elif depth == 0:
            return "a conditional of the text around it"
        elif word == "endif":
            depth -= 1
    return "a conditional (#if without #endif)" if depth else ""


def _raw_is_closed(piece: str, delimiter: str) -> bool:
    closing = f'){delimiter}"'
    return piece.endswith(closing) and piece.index("(") + 1 + len(closing) <= len(piece)
