"""What of a C, C++, CUDA, OpenCL or SYCL source a kernel executes, as plain text: the input of the level readers.

Comments and literals are blank, false preprocessor branches and branches on constants are gone, macros, aliases and template
values are put in, and only kernels and what they call is left. Every step is bounded, so hostile text costs little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kfd.prompting import lexing

__all__ = ["Function", "Live", "closing", "live_parts", "split_arguments"]

_MAX_TEXT = 64 << 10
_MAX_GROWN = 128 << 10
_MAX_FUNCTIONS = 200
_MAX_MACROS = 100
_MAX_EXPANSIONS = 300
_REACH = 4000
"""Characters in which brackets must close to be read as a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function of the source."""

    name: str
    head: str
    """From the end of what stands before to the opening brace."""
    parameters: tuple[str, ...]
    body: str

    @property
    def is_kernel(self) -> bool:
        """Whether the host starts it."""
        return _KERNEL.search(self.head) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What runs on the device."""

    functions: tuple[Function, ...]
    """Kernels first, then what they reach; parts of a lambda kernel are a function without a name."""
    code: str
    """Heads and bodies of all of them, and what stands around functions."""


_KERNEL = re.compile(r"\b__global__\b|\b(?:__)?kernel\b|\b(?:nd_range|single_task)_kernel\b")
_DIRECTIVE = re.compile(r"[ \t]*(?:#|%:)[ \t]*(\w+)[ \t]*(.*)", re.S)
_WORD = re.compile(r"[A-Za-z_]\w*")
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__)\b\s*)?\(")
_PTX = (
    ("shfl", "__shfl_sync(0)"), ("redux", "__reduce_add_sync(0)"), ("vote", "__ballot_sync(0)"),
    ("red.global", "atomicAdd(ptx_global, 0)"), ("atom.global", "atomicAdd(ptx_global, 0)"), ("cp.async", "cp_async(0)"),
    ("mma", "mma_sync(0)"), ("bar.sync", "__syncthreads()"), (".v4.", "float4"), (".v2.", "float2"),
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
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[(\[{<>}\]),]", text[:_REACH]):
        if match[0] == ",":
            if depth == 0 and len(parts) < 63:
                parts.append(text[start : match.start()].strip())
                start = match.end()
        else:
            depth += 1 if match[0] in "([{<" else -1
    return [*parts, text[start:].strip()]


def live_parts(text: str, launched: frozenset[str] = frozenset()) -> Live:
    """What the kernels of a source execute; ``launched`` names the kernels that a launch plan starts, if there is one.

    A source without a kernel is live as a whole: then nothing can be told apart.
    """
    code = _without_assembly(text[:_MAX_TEXT])
    lines, macros = _preprocessed(code, text)
    code = _expanded(lines, macros)
    code = _aliased(code)
    functions, around = _functions(code)
    functions = _instantiated(functions, code)
    entries = [function for function in functions if function.is_kernel]
    named = [function for function in entries if function.name in launched]
    entries = named or entries or list(_lambdas(functions))
    if not entries:
        return Live(functions=tuple(functions), code=code)
    reached = _reached(entries, functions)
    pieces = [around, *(f"{function.head}\n{function.body}" for function in reached)]
    return Live(functions=tuple(reached), code="\n".join(pieces))


def _without_assembly(text: str) -> str:
    """Comments and literals blank; inline assembly as the constructs that it is read as."""
    code = lexing.blanked(text.encode("utf-8", "replace")).decode("latin-1")
    source = text.encode("utf-8", "replace").decode("latin-1")
    pieces, done = [], 0
    for match in _ASM.finditer(code):
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
        elif word == "define" and False not in states and len(macros) < _MAX_MACROS:
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
    # A compiler's or a toolchain's own name, or a tunable, may be defined; another that the source never defines is not.
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
            if re.fullmatch(r"[-+]?[\w.]*", body) and parameters is None and not _WORD.fullmatch(body):
                continue  # a number keeps its name
            if parameters is not None:
                opened = re.compile(r"\s*\(").match(code, end)
                end = closing(code, opened.end() - 1) if opened else end
                if opened is None or end < opened.end():
                    continue
                given = dict(zip(parameters, split_arguments(code[opened.end() : end - 1]), strict=False))
                body = _WORD.sub(lambda word, given=given: given.get(word[0], word[0]), body)  # type: ignore[misc]
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
        if len(aliases) < _MAX_MACROS and name not in _WORD.findall(meaning):
            # Only the type itself: what an alias template fills in is put behind it by its use.
            aliases[name] = re.sub(r"\s+", " ", meaning).strip()
    if not aliases:
        return code
    code = _ALIAS.sub("", code)
    known = re.compile(rf"\b(?:{'|'.join(map(re.escape, aliases))})\b")
    for _ in range(3):
        code = known.sub(lambda match: aliases[match[0]], code)[:_MAX_GROWN]
    return code


_SCOPE = re.compile(r"\b(?:namespace\b[^()]*|extern\s*)$")


def _functions(code: str) -> tuple[list[Function], str]:
    """Functions outside others, and the code around them."""
    functions: list[Function] = []
    around: list[str] = []
    at = start = 0
    brace = re.compile(r"[{};]")
    while (match := brace.search(code, at)) is not None:
        at = match.end()
        if match[0] != "{":
            around.append(code[start:at])
            start = at
            continue
        head = code[start : match.start()]
        if _SCOPE.search(head):
            start = at
            continue
        end = closing(code, match.start(), len(code))
        if end <= match.start():
            break
        parameters = _parameters(head)
        if parameters is not None and len(functions) < _MAX_FUNCTIONS:
            name, given = parameters
            functions.append(Function(name=name, head=head, parameters=given, body=code[match.start() : end]))
        else:
            around.append(code[start:end])
        at = start = end
    return functions, "".join(around) + code[start:]


def _parameters(head: str) -> tuple[str, tuple[str, ...]] | None:
    """Name and parameters of a function's head; None when it is none."""
    end = head.rfind(")")
    if end < 0 or "=" in head[end:]:
        return None
    depth = 0
    for at in range(end, max(-1, end - _REACH), -1):
        depth += (head[at] == ")") - (head[at] == "(")
        if depth == 0:
            named = re.search(r"(\w+)\s*$", head[:at][-200:])
            return (named[1], tuple(split_arguments(head[at + 1 : end]))) if named else None
    return None


_TEMPLATE = re.compile(r"\btemplate\s*<([^<>]{1,300})>")


def _instantiated(functions: list[Function], code: str) -> list[Function]:
    """Functions with the values of their templates put in, where every use gives the same, and without dead branches."""
    made = []
    for function in functions:
        body = function.body
        template = _TEMPLATE.search(function.head)
        uses = re.findall(rf"\b{re.escape(function.name)}\s*<([^<>;]{{1,200}})>\s*\(", code) if template else []
        if template is not None and len(set(uses)) == 1:
            names = [part.partition("=")[0].split()[-1:] for part in template[1].split(",")]
            values = {name[0]: value for name, value in zip(names, split_arguments(uses[0]), strict=False) if name}
            body = _WORD.sub(lambda word, values=values: values.get(word[0], word[0]), body)  # type: ignore[misc]
        body = _without_dead(body)
        made.append(Function(name=function.name, head=function.head, parameters=function.parameters, body=body))
    return made


_CONSTANT_IF = re.compile(r"\bif\s*(?:constexpr\s*)?\(\s*(false|0|true|1|!\s*true|!\s*1|!\s*false|!\s*0)\s*\)\s*")


def _statement_end(code: str, at: int) -> int:
    """Place after the statement that begins at ``at``."""
    if code[at : at + 1] == "{":
        return max(closing(code, at, len(code)), at + 1)
    end = code.find(";", at)
    return len(code) if end < 0 else end + 1


def _without_dead(code: str) -> str:
    """The code without branches that a constant switches off; 50 of them."""
    for _ in range(50):
        match = _CONSTANT_IF.search(code)
        if match is None:
            break
        taken = re.sub(r"\s", "", match[1]) in ("true", "1", "!false", "!0")
        end = _statement_end(code, match.end())
        other = re.compile(r"\s*else\b\s*").match(code, end)
        last = _statement_end(code, other.end()) if other else end
        rest = code[other.end() : last] if other else ""
        code = code[: match.start()] + (code[match.end() : end] if taken else rest) + code[last:]
    return code


_SUBMIT = re.compile(r"\b(?:parallel_for(?:_work_group)?|single_task)\b\s*(?:<[^<>;]{0,200}>\s*)?\(")
_HANDED = re.compile(r"\b(?:sycl::)?(?:local_accessor\s*<[^;]{1,300};|reduction\s*\([^;]{1,300};)")


def _lambdas(functions: list[Function]) -> Iterator[Function]:
    """Kernels that are lambdas in a function of the host, with the local memory and reductions that it hands to them."""
    for function in functions:
        parts = []
        for match in _SUBMIT.finditer(function.body):
            end = closing(function.body, match.end() - 1, len(function.body))
            parts.append(function.body[match.end() : end])
        if parts:
            handed = [match[0] for match in _HANDED.finditer(function.body)]
            head = f"({', '.join(function.parameters)})"
            yield Function(name="", head=head, parameters=function.parameters, body="\n".join([*handed, *parts]))


def _reached(entries: list[Function], functions: list[Function]) -> list[Function]:
    """The entries and every function whose name they lead to."""
    named: dict[str, list[Function]] = {}
    for function in functions:
        named.setdefault(function.name, []).append(function)
    reached, seen = list(entries), {function.name for function in entries}
    for function in reached:  # grows while it is read
        for word in dict.fromkeys(_WORD.findall(function.body)):
            if word in named and word not in seen:
                seen.add(word)
                reached += [other for other in named[word] if not other.is_kernel]
    return reached
