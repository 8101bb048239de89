"""Tunables: numbers that a kernel declares beside its code, with their values and what must hold between them.

``// [TUNE] TILE in {8, 16, 32}; VEC in {1, 2, 4}; where TILE * VEC <= 64`` (``#`` instead of ``//`` in Python).
The first value of each set is its default. A tunable becomes a macro (a ``constexpr`` of Triton) and a name in
the expressions of the launch plan. Several lines add up. Pure and bounded: the text is a stranger's.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kfd.base.expr import ExprError, evaluate, names

__all__ = [
    "MAX_TUNABLES",
    "MAX_VALUES",
    "Condition",
    "PlanError",
    "PlanProblem",
    "Tunable",
    "TuneSpace",
    "directives",
    "parse",
]

MAX_TUNABLES = 16
MAX_VALUES = 64
"""Values of one tunable."""

_MAX_CONDITIONS = 16
_MAX_VALUE = 1 << 31
_MAX_LINE = 4000
_MAX_PROBLEMS = 10
_DIRECTIVE = re.compile(r"[ \t]*(?://+|#)[ \t]*\[(?P<word>TUNE|LAUNCH)\](?P<rest>[^\n]*)")
_LOOKS_LIKE = re.compile(r"[ \t]*(?://+|#)[ \t]*[\[(<{]/?[ \t]*(?P<word>TUNE|LAUNCH)\w*[ \t]*[\])>}]", re.I)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}", re.A)
_SET = re.compile(r"(?P<name>\S+)\s+in\s+\{(?P<values>[^{}]*)\}")
_COMPARED = re.compile(r"<=|>=|==|!=|<|>")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProblem:
    """One thing that is wrong with the comments that kfd reads in a kernel."""

    line: int
    """1-based line of the kernel file; 0 when no line is to blame."""
    text: str
    mend: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.text}. {self.mend}"


class PlanError(ValueError):
    """Tunables or a launch plan that cannot be used; ``problems`` holds at least one reason."""

    def __init__(self, problems: Iterable[PlanProblem]) -> None:
        self.problems = tuple(problems)[:_MAX_PROBLEMS]
        super().__init__("; ".join(str(one) for one in self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunable:
    """One declared number."""

    name: str
    values: tuple[int, ...]
    """Allowed values, without repetition; the first is the default."""
    line: int

    @property
    def default(self) -> int:
        """The value that holds when nobody chooses."""
        return self.values[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One comparison of two integer expressions over tunables."""

    left: str
    comparison: str
    right: str
    line: int

    def __str__(self) -> str:
        return f"{self.left} {self.comparison} {self.right}"

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether the values satisfy it. Raises ExprError when a side has no value."""
        return _COMPARE[self.comparison](evaluate(self.left, values), evaluate(self.right, values))


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSpace:
    """All tunables of a kernel and what must hold between them."""

    tunables: tuple[Tunable, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Names of the tunables."""
        return frozenset(one.name for one in self.tunables)

    def choose(self, chosen: Mapping[str, int]) -> dict[str, int]:
        """Every tunable's value: the chosen one, else the default. Raises PlanError for a choice that is not offered.

        Names in ``chosen`` that are no tunables are ignored: they are plain definitions.
        """
        values = {one.name: chosen.get(one.name, one.default) for one in self.tunables}
        wrong = [_not_offered(one, values[one.name]) for one in self.tunables if values[one.name] not in one.values]
        if not wrong:
            wrong = [problem for one in self.conditions if (problem := _unmet(one, values)) is not None]
        if wrong:
            raise PlanError(wrong)
        return values


def _not_offered(one: Tunable, value: int) -> PlanProblem:
    offered = ", ".join(map(str, one.values))
    return PlanProblem(line=one.line, text=f"{one.name} = {value} is not offered", mend=f"Choose one of {offered}.")


def _unmet(one: Condition, values: Mapping[str, int]) -> PlanProblem | None:
    try:
        if one.holds(values):
            return None
        reason = "does not hold"
    except ExprError as error:
        reason = f"has no value: {error}"
    given = ", ".join(f"{name} = {value}" for name, value in sorted(values.items()))
    return PlanProblem(line=one.line, text=f"`where {one}` {reason} with {given}", mend="Choose other values.")


def directives(text: str, word: str) -> Iterator[tuple[int, str]]:
    """(line, rest) of every ``[TUNE]`` or ``[LAUNCH]`` comment of a kernel text. Raises PlanError for a near miss."""
    for number, raw in enumerate(text.split("\n"), start=1):
        # Most lines of a kernel are none of ours: a cheap look first.
        if word not in raw.upper():
            continue
        line = raw.rstrip("\r")
        match = _DIRECTIVE.match(line)
        if match is None:
            near = _LOOKS_LIKE.match(line)
            if near is not None and near["word"].upper() == word:
                mend = f"Begin the comment with `[{word}]`; there is no end marker."
                raise PlanError([PlanProblem(line=number, text=f"a misspelt [{word}] comment", mend=mend)])
        elif match["word"] == word:
            if len(line) > _MAX_LINE:
                what = f"a [{word}] line of {len(line)} characters"
                raise PlanError([PlanProblem(line=number, text=what, mend=f"Use at most {_MAX_LINE}.")])
            yield number, match["rest"].strip()


def parse(text: str) -> TuneSpace:
    """The tunables of a kernel text. Raises PlanError, with line and mend, for what cannot be read.

    The defaults satisfy every condition of the result.
    """
    tunables: dict[str, Tunable] = {}
    conditions: list[Condition] = []
    for line, rest in directives(text, "TUNE"):
        for part in _parts(rest, line):
            if part.split(None, 1)[0] == "where":
                conditions += _conditions(part[len("where") :], line)
            else:
                one = _tunable(part, line)
                if one.name in tunables:
                    raise _problem(line, f"tunable {one.name} is there twice", "Keep one of them.")
                tunables[one.name] = one
    if len(tunables) > MAX_TUNABLES or len(conditions) > _MAX_CONDITIONS:
        what = f"{len(tunables)} tunables with {len(conditions)} conditions"
        raise _problem(0, what, f"Keep to {MAX_TUNABLES} and {_MAX_CONDITIONS}.")
    _check_names(conditions, tunables)
    space = TuneSpace(tunables=tuple(tunables.values()), conditions=tuple(conditions))
    space.choose({})
    return space


def _problem(line: int, text: str, mend: str) -> PlanError:
    return PlanError([PlanProblem(line=line, text=text, mend=mend)])


def _parts(rest: str, line: int) -> list[str]:
    parts = [part.strip() for part in rest.split(";")]
    parts = [part for part in parts if part]
    if not parts:
        raise _problem(line, "an empty [TUNE] comment", "Write `[TUNE] TILE in {8, 16, 32}`.")
    return parts


def _tunable(part: str, line: int) -> Tunable:
    match = _SET.fullmatch(part)
    if match is None:
        raise _problem(line, f"`{part[:80]}` is no tunable", "Write `TILE in {8, 16, 32}`; `;` separates several.")
    name = match["name"]
    if not _NAME.fullmatch(name):
        mend = "Use up to 32 letters, digits and `_`, beginning with a letter."
        raise _problem(line, f"`{name[:80]}` cannot name a tunable", mend)
    values: list[int] = []
    for item in match["values"].split(","):
        word = item.strip()
        if not re.fullmatch(r"-?[0-9]{1,10}", word, re.A) or abs(int(word)) > _MAX_VALUE:
            raise _problem(line, f"`{word[:40]}` is no value of {name}", f"Use integers up to {_MAX_VALUE}.")
        values.append(int(word))
    if len(values) > MAX_VALUES or len(set(values)) != len(values):
        what = "has a value twice" if len(set(values)) != len(values) else f"has {len(values)} values"
        raise _problem(line, f"tunable {name} {what}", f"Give up to {MAX_VALUES} different values.")
    return Tunable(name=name, values=tuple(values), line=line)


def _conditions(text: str, line: int) -> list[Condition]:
    made = []
    for part in re.split(r"\band\b", text):
        signs = _COMPARED.findall(part)
        if len(signs) != 1:
            mend = "Write `where TILE * VEC <= 64`; `and` joins several."
            raise _problem(line, f"`{part.strip()[:80]}` is no condition", mend)
        left, right = (side.strip() for side in _COMPARED.split(part))
        made.append(Condition(left=left, comparison=signs[0], right=right, line=line))
    return made


def _check_names(conditions: Iterable[Condition], tunables: Mapping[str, Tunable]) -> None:
    for one in conditions:
        for side in (one.left, one.right):
            try:
                unknown = sorted(names(side) - tunables.keys())
            except ExprError as error:
                raise _problem(one.line, f"`{side[:80]}`: {error}", "Use integers, tunables, + - * // % ( ).") from None
            if unknown:
                known = ", ".join(tunables) or "none"
                mend = f"Conditions are about tunables; there are: {known}."
                raise _problem(one.line, f"`{side[:80]}` uses {unknown[0]}, which is no tunable", mend)
