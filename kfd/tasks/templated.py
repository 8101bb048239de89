"""Templates in the paper's form: ``forward_templated<...>`` with an explicit list of instantiations.

The kernel defines a function template ``forward_templated`` over integers, lists what may be tried as explicit
instantiations, and its entry calls one of them. The listed argument lists are the points of its space; choosing one
rewrites the arguments of that call and nothing else. Pure and bounded: the text is a stranger's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kfd.tasks.tunables import MAX_TUNABLES, MAX_VALUES, PlanError, PlanProblem

__all__ = ["MAX_POINTS", "Templated", "baked", "parse"]

MAX_POINTS = 1024
"""Instantiations of one template."""

_MAX_TEXT = 1 << 20
_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])'", re.S)
"""Comments and literals. One that is not closed goes to the end of the text or line: looked for anew from each of its
signs, an end that is not there takes minutes."""
_HEADER = re.compile(r"\btemplate\s*<([^<>;{}()]{1,400})>[^;{}<>()=]{0,400}\bforward_templated\s*\(")
_PARAMETER = re.compile(r"(?:const\s+)?(?:[a-z_:0-9]+\s+){1,3}([A-Za-z_]\w{0,31})(?:\s*=\s*[\w-]+)?", re.A)
_USE = re.compile(r"\bforward_templated\s*<([^<>;{}()]{0,400})>")
_INSTANTIATION = re.compile(r"\btemplate\s+(?!<)[^;{}]*\Z")
_LOOK_BACK = 400
_WORDS = {"true": 1, "false": 0}
_INTEGER = re.compile(r"-?[0-9]{1,10}", re.A)


@dataclass(frozen=True, slots=True, kw_only=True)
class Templated:
    """A listed space."""

    names: tuple[str, ...]
    """Template parameters in their order."""
    points: tuple[tuple[int, ...], ...]
    """Argument lists without repetition; the first is the one that the entry calls."""
    span: tuple[int, int]
    """Where that call's arguments stand in the text."""

    @property
    def values(self) -> tuple[tuple[int, ...], ...]:
        """Of each parameter, the values that occur, those of the first point first."""
        return tuple(tuple(dict.fromkeys(point[at] for point in self.points)) for at in range(len(self.names)))


def parse(text: str) -> Templated | None:
    """The listed space of a kernel text; None when it has none.

    It has none without the template, without a second instantiation, or when not exactly one call of it has arguments
    that are written as integers: a dispatcher chooses by itself.
    """
    if "forward_templated" not in text or len(text) > _MAX_TEXT:
        return None
    code = _NOT_CODE.sub(lambda match: " " * len(match[0]), text)
    header = _HEADER.search(code)
    if header is None:
        return None
    parameters = [_PARAMETER.fullmatch(part.strip()) for part in header[1].split(",")]
    names = tuple(match[1] for match in parameters if match is not None)
    if len(names) != len(parameters) or len(set(names)) != len(names) or len(names) > MAX_TUNABLES:
        return None
    listed: list[tuple[int, ...]] = []
    calls: list[tuple[tuple[int, ...], tuple[int, int]]] = []
    for match in _USE.finditer(code):
        point = _integers(match[1])
        if point is None or len(point) != len(names):
            return None
        before = code[max(0, match.start() - _LOOK_BACK) : match.start()]
        if _INSTANTIATION.search(before):
            listed.append(point)
        else:
            calls.append((point, match.span(1)))
    if len(calls) != 1:
        return None
    points = tuple(dict.fromkeys([calls[0][0], *listed]))
    found = Templated(names=names, points=points, span=calls[0][1])
    if not 2 <= len(points) <= MAX_POINTS or any(len(values) > MAX_VALUES for values in found.values):
        return None
    return found


def baked(text: str, values: Mapping[str, int]) -> str:
    """The text with these arguments in the entry's call. Raises PlanError for a point that is not listed."""
    found = parse(text)
    point = tuple(values.get(name, 0) for name in found.names) if found is not None else ()
    if found is None or point not in found.points or values.keys() - set(found.names):
        given = ", ".join(f"{name} = {value}" for name, value in values.items())
        what = f"forward_templated is not instantiated with {given[:200]}"
        raise PlanError([PlanProblem(line=0, text=what, mend="Choose one of the listed instantiations.")])
    start, end = found.span
    return f"{text[:start]}{', '.join(map(str, point))}{text[end:]}"


def _integers(text: str) -> tuple[int, ...] | None:
    made = []
    for part in text.split(","):
        word = part.strip()
        if word in _WORDS:
            made.append(_WORDS[word])
        elif _INTEGER.fullmatch(word):
            made.append(int(word))
        else:
            return None
    return tuple(made)
