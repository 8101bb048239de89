"""The text that a compiler sees of a C, C++, CUDA, OpenCL or SYCL source, as far as behaviour needs it.

Comments and literals are blank, inline assembly is the constructs that it stands for, false branches of the
preprocessor are gone, macros and aliases of types are put in. Every step is bounded, so hostile text costs little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from kfd.prompting import lexing

__all__ = ["WORD", "closing", "compiled_text", "split_arguments"]

_MAX_TEXT = 64 << 10
_MAX_GROWN = 128 << 10
_MAX_NAMES = 100
_MAX_EXPANSIONS = 300
_REACH = 4000
"""Characters in which brackets must close to be read as a pair."""

WORD = re.compile(r"[A-Za-z_]\w*")
_DIRECTIVE = re.compile(r"[ \t]*(?:#|%:)[ \t]*(\w+)[ \t]*(.*)", re.S)
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__)\b\s*)?\(")
_PTX = (
    ("shfl", "__shfl_sync(0)"), ("redux", "__reduce_add_sync(0)"), ("vote", "__ballot_sync(0)"),
    ("red.global", "atomicAdd(ptx_global, 0)"), ("atom.global", "atomicAdd(ptx_global, 0)"),
    ("cp.async", "cp_async(0)"), ("mma", "mma_sync(0)"), ("bar.sync", "__syncthreads()"),
    (".v4.", "float4"), (".v2.", "float2"),
)  # fmt: skip
"""Instructions in the text of inline assembly, and the construct of CUDA that each is read as."""


def closing(text: str, at: int, reach: int = _REACH) -> int:
    """Place after the bracket that closes the one at ``at``; ``at`` itself when it does not close within ``reach``."""
    opened = text[at]
    closed = {"(": ")", "{": "}", "[": "]", "<": ">"}[opened]
    depth = 0
    for match in re.compile(rf"[{re.escape(opened + closed)}]").finditer(text, at, at + reach):
        depth += 1 if match[0] == opened else -1
        if depth == 0:
            return match.end()
    return at


def split_arguments(text: str) -> list[str]:
    """Arguments of a list without its brackets, split at commas outside brackets of any kind; at most 64."""
    parts: list[str] = []
    depth = start = 0
    for match in re.finditer(r"[(\[{<>}\]),]", text[:_REACH]):
        if match[0] == ",":
            if depth == 0 and len(parts) < 63:
                parts.append(text[start : match.start()].strip())
                start = match.end()
        else:
            depth += 1 if match[0] in "([{<" else -1
    return [*parts, text[start:].strip()]


def compiled_text(text: str) -> str:
    """The first 64 KiB of a source as above; places and lines are not those of the source."""
    code = _without_assembly(text[:_MAX_TEXT])
    lines, macros = _preprocessed(code, text)
    return _aliased(_expanded(lines, macros))


def _without_assembly(text: str) -> str:
    """Comments and literals blank; inline assembly as the constructs that it is read as."""
    code = lexing.blanked(text.encode("utf-8", "replace")).decode("latin-1")
    source = text.encode("utf-8", "replace").decode("latin-1")
    pieces: list[str] = []
    done = 0
    for match in islice(_ASM.finditer(code), _MAX_NAMES):
        if match.start() < done:
            continue
        end = closing(code, match.end() - 1)
        words = "; ".join(construct for instruction, construct in _PTX if instruction in source[match.end() : end])
        pieces += [code[done : match.start()], words]
        done = max(end, match.end())
    return "".join(pieces) + code[done:]


def _preprocessed(code: str, text: str) -> tuple[str, dict[str, tuple[tuple[str, ...] | None, str]]]:
    """Lines that are compiled, without directives, and the macros: parameters (None for a plain one) and body."""
    macros: dict[str, tuple[tuple[str, ...] | None, str]] = {}
    kept: list[str] = []
    states: list[bool | None] = []  # of each open conditional: its present branch is on, off, or unknown (kept)
    for line in re.sub(r"\\\r?\n", " ", code).split("\n"):
        match = _DIRECTIVE.match(line)
        if match is None:
            if False not in states:
                kept.append(line)
            continue
        word, rest = match[1], match[2].strip()
        if word in ("if", "ifdef", "ifndef"):
            states.append(_condition(word, rest, macros, text))
        elif word in ("elif", "else") and states:
            states[-1] = None if states[-1] is None or (word == "elif" and not states[-1]) else not states[-1]
        elif word == "endif" and states:
            states.pop()
        elif word == "define" and False not in states and len(macros) < _MAX_NAMES:
            define = re.match(r"(\w+)(\(([^()]*)\))?\s*(.*)", rest, re.S)
            if define is not None:
                given = None if define[2] is None else tuple(name.strip() for name in define[3].split(","))
                macros[define[1]] = (given, define[4][:_REACH])
    return "\n".join(kept), macros


def _condition(word: str, rest: str, macros: Mapping[str, object], text: str) -> bool | None:
    """Whether a branch is compiled; None when the source alone cannot tell."""
    if word == "if":
        plain = rest.strip("() ")
        if plain in ("0", "false"):
            return False
        if plain in ("1", "true"):
            return True
        asked = re.fullmatch(r"(!?)\s*defined\s*\(?\s*(\w+)\s*\)?", rest)
        if asked is None:
            return None
        word, rest = ("ifndef" if asked[1] else "ifdef"), asked[2]
    name = rest.split()[0] if rest.split() else ""
    if name in macros:
        return word == "ifdef"
    # A compiler's own name or a tunable may be defined; another that the source never defines is not.
    if name.startswith("_") or re.search(rf"\[TUNE\][^\n]{{0,500}}\b{re.escape(name)}\b", text):
        return None
    return word != "ifdef"


def _expanded(code: str, macros: Mapping[str, tuple[tuple[str, ...] | None, str]]) -> str:
    """The code with its macros put in, three levels deep."""
    if not macros:
        return code
    known = re.compile(rf"\b(?:{'|'.join(map(re.escape, macros))})\b")
    left = _MAX_EXPANSIONS
    for _ in range(3):
        pieces, done = [], 0
        for match in known.finditer(code):
            if match.start() < done or left <= 0:
                continue
            parameters, body = macros[match[0]]
            end = match.end()
            if re.fullmatch(r"[-+]?[\w.]*", body) and parameters is None and not WORD.fullmatch(body):
                continue  # a number keeps its name
            if parameters is not None:
                opened = re.compile(r"\s*\(").match(code, end)
                end = closing(code, opened.end() - 1) if opened else end
                if opened is None or end < opened.end():
                    continue
                given = dict(zip(parameters, split_arguments(code[opened.end() : end - 1]), strict=False))
                body = WORD.sub(lambda word, given=given: given.get(word[0], word[0]), body)  # type: ignore[misc]
            left -= 1
            pieces += [code[done : match.start()], body]
            done = end
        if not pieces:
            break
        code = ("".join(pieces) + code[done:])[:_MAX_GROWN]
    return code


_ALIAS = re.compile(
    r"\busing\s+(?P<using>\w+)\s*=\s*(?P<of>[^;{}]{1,300});|\btypedef\s+(?P<type>[^;{}()]{1,300}?)\s*\b(?P<name>\w+)\s*;"
)


def _aliased(code: str) -> str:
    """The code with the types that aliases stand for, three levels deep."""
    aliases: dict[str, str] = {}
    for match in _ALIAS.finditer(code):
        name, meaning = match["using"] or match["name"], match["of"] or match["type"]
        if len(aliases) < _MAX_NAMES and name not in WORD.findall(meaning):
            # Only the type itself: what an alias template fills in is put behind it by its use.
            aliases[name] = re.sub(r"\s+", " ", meaning).strip()
    if not aliases:
        return code
    code = _ALIAS.sub("", code)
    known = re.compile(rf"\b(?:{'|'.join(map(re.escape, aliases))})\b")
    for _ in range(3):
        code = known.sub(lambda match: aliases[match[0]], code)[:_MAX_GROWN]
    return code
