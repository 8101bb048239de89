"""Baking: a point of a kernel's tunables becomes its defaults, in the source that is handed back.

The chosen value moves to the front of its set. Where nobody defines the macros (host form), a ``#define`` marked
``[TUNED]`` follows the declaration, in place of any that an earlier baking left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kfd.tasks.tunables import directives, parse

__all__ = ["baked"]

_SET = re.compile(r"(?P<head>\b(?P<name>[A-Za-z][A-Za-z0-9_]*)\s+in\s+)\{(?P<values>[^{}]*)\}", re.A)
_TUNED = re.compile(r"[ \t]*#[ \t]*define[ \t]+\w+[ \t]+\(?-?[0-9]+\)?[ \t]*// \[TUNED\]\r?", re.A)


def baked(text: str, values: Mapping[str, int], *, macros: bool) -> str:
    """The text with these values as the defaults of its tunables; ``macros`` defines them too.

    Raises PlanError for tunables that cannot be read and values that are not offered.
    """
    chosen = parse(text).choose(values)
    lines = [line for line in text.split("\n") if not _TUNED.fullmatch(line)]
    declared = {number for number, _ in directives("\n".join(lines), "TUNE")}
    made: list[str] = []
    for number, line in enumerate(lines, start=1):
        if number not in declared:
            made.append(line)
            continue
        made.append(_SET.sub(lambda match: _first(match, chosen), line))
        if macros:
            names = [match["name"] for match in _SET.finditer(line)]
            made += [f"#define {name} {_literal(chosen[name])}  // [TUNED]" for name in names if name in chosen]
    return "\n".join(made)


def _first(match: re.Match[str], chosen: Mapping[str, int]) -> str:
    value = chosen.get(match["name"])
    if value is None:
        return match[0]
    others = [part.strip() for part in match["values"].split(",") if int(part) != value]
    return f"{match['head']}{{{', '.join([str(value), *others])}}}"


def _literal(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"
