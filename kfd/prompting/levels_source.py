"""What of a C, C++, CUDA, OpenCL or SYCL source a kernel executes, as plain text: the input of the level readers.

The text that is compiled (``levels_preprocess``) with the values of templates put in and branches on constants gone,
and of it only kernels and what they call. Every step is bounded, so hostile text costs little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from kfd.prompting.levels_preprocess import WORD, closing, compiled_text, split_arguments

__all__ = ["Function", "Live", "live_parts"]

_MAX_FUNCTIONS = 200
_MAX_KERNELS = 50
_REACH = 4000
"""Characters of a head in which its parameters are looked for."""


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
    """Heads and bodies of all of them, and shared memory that is declared outside functions."""


_KERNEL = re.compile(r"\b__global__\b|\b(?:__)?kernel\b|\b(?:nd_range|single_task)_kernel\b")


def live_parts(text: str, launched: frozenset[str] = frozenset()) -> Live:
    """What the kernels of a source execute; ``launched`` names the kernels that a launch plan starts, if there is one.

    A source without a kernel is live as a whole: then nothing can be told apart.
    """
    code = compiled_text(text)
    functions, around = _functions(code)
    functions = _instantiated(functions, code)
    entries = [function for function in functions if function.is_kernel]
    named = [function for function in entries if function.name in launched]
    entries = (
        named or entries or list(_lambdas(functions)) or [each for each in functions if _EXPORTED.search(each.head)]
    )
    if not entries:
        return Live(functions=tuple(functions), code=code)
    reached = _reached(entries, functions)
    shared = re.findall(r"\b__shared__\b[^;{}]{1,300};", around)
    pieces = [*shared, *(f"{function.head}\n{function.body}" for function in reached)]
    return Live(functions=tuple(reached), code="\n".join(pieces))


_EXPORTED = re.compile(r"\bextern\b")
_SCOPE = re.compile(r"\b(?:namespace\b[^()]*|extern\s*)$")


def _functions(code: str) -> tuple[list[Function], str]:
    """Functions outside others, and the code around them."""
    functions: list[Function] = []
    around: list[str] = []
    at = start = exported = 0
    brace = re.compile(r"[{};]")
    while (match := brace.search(code, at)) is not None:
        at = match.end()
        if match[0] != "{":
            around.append(code[start:at])
            start = at
            continue
        head = code[start : match.start()]
        if _SCOPE.search(head):
            if start >= exported and _EXPORTED.search(head):
                end = closing(code, match.start(), len(code))
                exported = end if end > match.start() else len(code)
            start = at
            continue
        end = closing(code, match.start(), len(code))
        if end <= match.start():
            break
        parameters = _parameters(head)
        head = f"extern {head}" if start < exported else head
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
    """Functions with their templates' values put in, where every use gives the same, and without dead branches."""
    made = []
    for function in functions:
        body = function.body
        template = _TEMPLATE.search(function.head)
        uses = re.findall(rf"\b{re.escape(function.name)}\s*<([^<>;]{{1,200}})>\s*\(", code) if template else []
        if template is not None and len(set(uses)) == 1:
            names = [part.partition("=")[0].split()[-1:] for part in template[1].split(",")]
            values = {name[0]: value for name, value in zip(names, split_arguments(uses[0]), strict=False) if name}
            body = WORD.sub(lambda word, values=values: values.get(word[0], word[0]), body)  # type: ignore[misc]
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
    """Kernels that are lambdas in a function of the host, with local memory and reductions that it hands to them."""
    for function in functions:
        parts = []
        for match in islice(_SUBMIT.finditer(function.body), _MAX_KERNELS):
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
        for word in dict.fromkeys(WORD.findall(function.body)):
            if word in named and word not in seen:
                seen.add(word)
                reached += [other for other in named[word] if not other.is_kernel]
    return reached
