"""``python -m tests.hostile [words]``: every program of the corpus, one line each; 1 when one got a wrong verdict.

Words pick programs: part of a name, an id, or a letter of the catalogue. Programs are built first, two at a time,
and run afterwards one by one, so that no compiler runs beside a measurement.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kfd.base.digest import Digest
from kfd.base.instant import SECOND, Span
from kfd.base.work import Report
from tests.hostile.corpus import Program, load_programs
from tests.hostile.field import Field, mismatch
from tests.hostile.known_gaps import KNOWN_GAPS

_Built = tuple[Digest | None, Report, Span]


async def _build_all(field: Field, programs: Sequence[Program]) -> dict[str, _Built]:
    built: dict[str, _Built] = {}
    waiting = list(reversed(programs))

    async def lane(number: int) -> None:
        while waiting:
            program = waiting.pop()
            built[program.name] = await field.build(program, number)

    await asyncio.gather(lane(0), lane(1))
    return built


async def play(programs: Sequence[Program], folder: Path) -> int:
    """Build and run them all, one line each. Returns how many got a wrong verdict and are not known to."""
    field = await Field.open(folder)
    wrong = gaps = 0
    try:
        for task, reason in field.skipped.items():
            number = sum(program.task == task for program in programs)
            print(f"skipped: {number} programs of {task}: {reason}", flush=True)
        programs = [program for program in programs if program.task not in field.skipped]
        built = await _build_all(field, programs)
        for program in programs:
            seen = await field.run(program, *built[program.name])
            fault = mismatch(program, seen)
            known = program.name in KNOWN_GAPS
            wrong += bool(fault) and not known
            gaps += bool(fault) and known
            expected = "|".join(sorted(program.expect)) + (f"<={program.at_most:g}x" if program.at_most else "")
            got = ",".join(dict.fromkeys(seen.codes)) + (f" {seen.speed:.2f}x" if seen.speed else "")
            mark = ("GAP " if known else "BAD ") if fault else "good"
            kind = "honest " if program.honest else "hostile"
            print(
                f"{mark} {program.id:<4} {kind} {program.name:<44} expected {expected:<38} got {got:<16}"
                f" {seen.took_ns / SECOND:6.2f} s" + (f"  {fault}" if fault else ""),
                flush=True,
            )
            if fault:
                tail = seen.reports[-1].log_tail.strip().split("\n")[-3:]
                print("".join(f"          | {line[:200]}\n" for line in tail if line), end="", flush=True)
        for task in field.tasks:
            # Whatever they did, the machine still measures: a verdict here raises.
            await field.control(task)
    finally:
        await field.close()
    hostile = sum(not program.honest for program in programs)
    print(f"{hostile} hostile programs, {len(programs) - hostile} honest ones: {wrong} wrong, {gaps} known gaps")
    for name in sorted(set(KNOWN_GAPS) & {program.name for program in programs}):
        print(f"known gap: {name}: {KNOWN_GAPS[name]}")
    return wrong


def main(words: Sequence[str]) -> int:
    """Play the programs that were asked for; the exit code."""
    programs = [
        program
        for program in load_programs()
        if not words or any(word in program.name or word in (program.id, program.id[0]) for word in words)
    ]
    if not programs:
        print(f"no program's name holds any of {', '.join(words)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="kfd-hostile-") as folder:
        return 1 if asyncio.run(play(programs, Path(folder))) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
