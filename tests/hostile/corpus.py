"""The programs of the corpus: one file each (C++, OpenCL C, SYCL), whose first lines say what it is and what it must
get. Pure.

A file starts with lines ``// key: value`` up to the first blank line:

- ``id``: entry of the catalogue (evaluation notes, section 3: ``A6``, ``D11``) or ``X`` for our own inventions;
- ``task``: folder below ``tests/hostile/tasks`` whose EVOLVE block the file becomes;
- ``expect``: the verdicts that are right, separated by spaces; an honest file has ``ok`` and nothing else;
- ``says``: text that the verdict must hold (optional);
- ``why``: one line for the reader;
- ``at_most``: the program may be ``ok``, at no more than this many times the speed of the task's own kernel
  (optional): it attacks the clock, answers right and is slower by construction, so that a clock that is fooled
  shows as a speed-up;
- ``run_ms``, ``build_ms``: limits of the box (optional); ``runs``: how often it is run in a row (optional).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kfd.base.work import VerdictCode

__all__ = ["FOLDER", "SUFFIXES", "Program", "load_programs", "parse_program"]

FOLDER = Path(__file__).parent
SUFFIXES = (".cpp", ".cl", ".sycl")
_LINE = re.compile(r"// ([a-z_]+): (.+)")
_KEYS = {"id", "task", "expect", "says", "why", "at_most", "run_ms", "build_ms", "runs"}
_NEEDED = {"id", "task", "expect", "why"}
_ID = re.compile(r"[A-E]\d{1,2}|X")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program and the verdicts it must get."""

    name: str
    honest: bool
    id: str
    task: str
    expect: frozenset[VerdictCode]
    says: str
    why: str
    block: str
    """What the EVOLVE block becomes: the whole file, header included."""
    at_most: float = 0.0
    """Most speed-up over the task's kernel with which ``ok`` is right; 0: the program does not attack the clock."""
    run_ms: int = 1500
    build_ms: int = 20_000
    runs: int = 1


def parse_program(name: str, text: str, *, honest: bool) -> Program:
    """Read one file. Raises ValueError with what is wrong in it."""
    values: dict[str, str] = {}
    for line in text.split("\n"):
        if not line.strip():
            break
        found = _LINE.fullmatch(line)
        if found is None or found[1] not in _KEYS or found[1] in values:
            raise ValueError(f"{name}: not a header line: {line!r}; keys: {', '.join(sorted(_KEYS))}")
        values[found[1]] = found[2].strip()
    missing = _NEEDED - set(values)
    if missing:
        raise ValueError(f"{name}: the header lacks {', '.join(sorted(missing))}")
    if not _ID.fullmatch(values["id"]):
        raise ValueError(f"{name}: {values['id']!r} is no entry of the catalogue")
    expect = frozenset(VerdictCode(word) for word in values["expect"].split())
    at_most = float(values.get("at_most", "0"))
    if honest and expect != {VerdictCode.OK}:
        raise ValueError(f"{name}: an honest program expects ok and nothing else")
    if not honest and (VerdictCode.OK in expect) != (at_most > 0):
        raise ValueError(f"{name}: a hostile program may be ok only with at_most, which bounds its speed")
    return Program(
        name=name,
        honest=honest,
        id=values["id"],
        task=values["task"],
        expect=expect,
        says=values.get("says", ""),
        why=values["why"],
        block=text,
        at_most=at_most,
        run_ms=int(values.get("run_ms", "1500")),
        build_ms=int(values.get("build_ms", "20000")),
        runs=int(values.get("runs", "1")),
    )


def load_programs(folder: Path = FOLDER / "programs") -> tuple[Program, ...]:
    """All programs, hostile ones first, each group in the catalogue's order. Raises ValueError."""
    found: list[Program] = []
    for kind in ("hostile", "honest"):
        for path in sorted(one for one in (folder / kind).iterdir() if one.suffix in SUFFIXES):
            name = path.stem.replace("_", " ")
            found.append(parse_program(name, path.read_text(encoding="utf-8"), honest=kind == "honest"))
    return tuple(sorted(found, key=_order))


def _order(program: Program) -> tuple[bool, str, int, str]:
    letter, number = program.id[0], program.id[1:] or "0"
    return program.honest, letter, int(number), program.name
