"""Near-duplicates: sources that differ in the names of their variables alone, and so compile to the same code.

Only names that are surely a kernel's own are taken away: variables and parameters of known types, in Python arguments
and assigned names. Functions keep their names (which one is the entry matters), and so does whatever also names a
member, a macro, a keyword argument, a tunable or something in the launch plan. So two sources may be near and are told
apart, but two that are held to be the same are the same: one becomes the other by renaming.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from kfd.base.digest import Digest, digest_of
from kfd.prompting.features import statements
from kfd.prompting.language import PYTHON, C, Language

__all__ = ["shape"]

_NAME = re.compile(r"[^\W\d]\w*", re.A)
_TYPE = re.compile(
    r"(?:float|double|half|int|uint|long|ulong|short|ushort|char|uchar|bool|unsigned|signed|auto|bfloat16)\d{0,2}"
    r"|\w{1,30}_t|__m\d{3}[di]?|__nv_bfloat16|__half2?|nv_bfloat162?"
)
_BETWEEN = frozenset(("*", "&", "const", "restrict", "__restrict", "__restrict__", "volatile"))
_AFTER = frozenset(("=", ";", ",", ")", "[", "{", ":"))
_MEMBER = frozenset((".", "->", "::", "->*"))
_MAX_PARSED = 200_000


def shape(text: str, language: Language = C) -> Digest:
    """Digest of the token stream with a kernel's own names numbered in the order in which they come."""
    tokens = language.stream(text)
    said = [*statements(text, "TUNE"), *statements(text, "LAUNCH")]
    kept = set(_NAME.findall("\n".join(said)))
    own = (_python_names(text, tokens) if language is PYTHON else _c_names(tokens)) - kept
    numbers: dict[str, str] = {}
    pieces = [numbers.setdefault(token, f"\1{len(numbers)}") if token in own else token for token in tokens]
    return digest_of("\0".join([*pieces, *said]).encode("utf-8", "surrogatepass"))


def _c_names(tokens: list[str]) -> set[str]:
    """Variables and parameters that are declared with a known type, and name nothing else."""
    found: set[str] = set()
    other = _used_otherwise(tokens)
    directive = False
    for at, token in enumerate(tokens):
        if token == "\n":
            directive = False
        elif token == "#":
            directive = True
        elif _NAME.fullmatch(token):
            if directive or (at + 1 < len(tokens) and tokens[at + 1] == "("):
                other.add(token)
            elif at + 1 < len(tokens) and tokens[at + 1] in _AFTER and _is_declared(tokens, at):
                found.add(token)
    return {name for name in found - other if not _TYPE.fullmatch(name)}


def _is_declared(tokens: list[str], at: int) -> bool:
    back = at - 1
    while back >= 0 and tokens[back] in _BETWEEN:
        back -= 1
    return back >= 0 and _TYPE.fullmatch(tokens[back]) is not None


def _used_otherwise(tokens: Iterable[str]) -> set[str]:
    """Names that stand behind a member's sign."""
    found: set[str] = set()
    before = ""
    for token in tokens:
        if before in _MEMBER:
            found.add(token)
        before = token
    return found


def _python_names(text: str, tokens: list[str]) -> set[str]:
    """Arguments and assigned names of functions; none of a text that does not parse."""
    if len(text) > _MAX_PARSED:
        return set()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    own: set[str] = set()
    other = _used_otherwise(tokens)
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name):
                own.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                own.add(name)
            case ast.keyword(arg=str(name)):
                other.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                other.add(name)
            case ast.Call(func=ast.Name(id=name)):
                other.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                other.update(names)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                other.update(alias.asname or alias.name for alias in aliases)
            case _:
                pass
    return own - other
